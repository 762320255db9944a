package faults

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"jobwire/codec/gearman"
	"jobwire/refserver/inject"
)

const (
	submissions  = "SUBMIT_JOB SUBMIT_JOB_HIGH SUBMIT_JOB_LOW"
	backgrounded = "SUBMIT_JOB_BG SUBMIT_JOB_HIGH_BG SUBMIT_JOB_LOW_BG"
	assignments  = "JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL"
)

// Gearman contains the faults that can be injected into the built-in Gearman server.
var Gearman = []Fault{
	{Name: "report-to-nobody", Oracle: Exit,
		About: "An assertion in the server fails if a worker reports the failure of a job whose client has disconnected.",
		Edit: func(s *inject.Server) {
			var orphans recent // handles of jobs whose client has disconnected
			notes(assignments, "Job handle")(s)
			notes("JOB_CREATED", "Job handle")(s)
			s.Out("JOB_CREATED", func(m *message) { m.Peer.Mark = true }) // Mark says that the recorded job is one that the peer has submitted
			inject.On(inject.Closed, func(m *message) bool { return m.Peer.Mark }, func(m *message) { orphans.add(job(m.Peer)) })(s)
			inject.On("WORK_FAIL", func(m *message) bool {
				return job(m.Peer) == m.Value("Job handle") && slices.Contains(orphans, job(m.Peer))
			}, exits(1, "job.cc:212: assertion failed: client != NULL\n"))(s)
		}},
	{Name: "type-below-zero", Oracle: Signal,
		About: "The server reads the packet type as a signed number and uses a negative one as an index.",
		Edit:  inject.On(inject.Illegal, all(breaks(gearman.RuleTypeKnown), func(m *message) bool { return len(m.Frame.Raw) > 4 && m.Frame.Raw[4] >= 0x80 }), killedBy("SEGV", ""))},
	{Name: "drop-function-with-jobs", Oracle: Signal,
		About: "The server frees the memory of a function twice if the function is dropped while it has jobs.",
		Edit: func(s *inject.Server) {
			var used recent
			s.On(submissions+" "+backgrounded, func(m *message) { used.add(m.Value("Function")) })
			inject.On("drop-function", func(m *message) bool { return slices.Contains(used, m.Value("Function")) },
				killedBy("ABRT", "free(): double free detected in tcache 2\n"))(s)
		}},
	{Name: "client-id-of-64", Oracle: Sanitizer,
		About: "If a client ID has 64 bytes, the server writes the NUL after it past the end of the buffer.",
		Edit: inject.On("SET_CLIENT_ID", sized("Client ID", 64), exits(1, `=================================================================
==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x606000000060 at pc 0x5581 bp 0x7ffd sp 0x7ffd
WRITE of size 1 at 0x606000000060 thread T0
    #0 0x5581 in set_client_id worker.cc:41
SUMMARY: AddressSanitizer: heap-buffer-overflow worker.cc:41 in set_client_id
`))},
	{Name: "timeout-overflows", Oracle: Sanitizer,
		About: "A timeout of 2147483648 or more in CAN_DO_TIMEOUT overflows an integer in the server.",
		Edit: inject.On("CAN_DO_TIMEOUT", atLeast("Timeout", 1<<31),
			prints("worker.cc:88:31: runtime error: signed integer overflow: 2147483648 * 1000 cannot be represented in type 'int'\n"))},
	{Name: "reset-while-asleep", Oracle: Hang,
		About: "The server reads no more requests of a sleeping worker after the worker sent RESET_ABILITIES.",
		Edit:  inject.StopReading("RESET_ABILITIES", after("CAN_DO PRE_SLEEP"))},
	{Name: "handle-of-63-blocks", Oracle: ServerHang,
		About: "The server blocks on a GET_STATUS with a handle of 63 bytes, the maximum length.",
		Edit:  blocks("GET_STATUS", sized("Job handle", 63))},
	{Name: "handle-without-number", Oracle: Signal,
		About: "The server reads the number after the last colon of a handle without checking that there is one.",
		Edit:  inject.On("GET_STATUS", func(m *message) bool { return strings.HasSuffix(m.Value("Job handle"), ":") }, killedBy("SEGV", ""))},
	{Name: "half-closed-client-blocks", Oracle: ServerHang,
		About: "The server blocks if a client half-closes its connection after it submitted a job.",
		Edit:  blocks(inject.HalfClosed, after("SUBMIT_JOB"))},
	{Name: "twice-asleep-spins", Oracle: Spin,
		About: "The server enters an endless loop if a worker sends PRE_SLEEP twice in a row.",
		Edit:  spins("PRE_SLEEP", after("PRE_SLEEP"))},
	{Name: "option-kept", Oracle: Memory,
		About: "The server leaks memory for each option that a client sets.",
		Edit:  leaks("OPTION_REQ", is("Option", "exceptions"))},
	{Name: "sleeper-keeps-descriptor", Oracle: Descriptors,
		About: "The server leaks a file descriptor if a worker disconnects while it sleeps.",
		Edit:  leaksDescriptor(inject.Closed, after("PRE_SLEEP"))},
	{Name: "empty-unique-without-nul", Oracle: Framing,
		About: "The server omits an empty unique ID and its NUL from the packet that assigns the job.",
		Edit: inject.Out("JOB_ASSIGN_UNIQ", is("Unique ID", ""), func(m *message) {
			data := strings.Join([]string{m.Args[0], m.Args[1], m.Args[3]}, "\x00")
			m.Raw = append(binary.BigEndian.AppendUint32(m.Frame.Raw[:8:8], uint32(len(data))), data...)
		})},
	{Name: "progress-beyond-its-end", Oracle: Rule,
		About: "The server reports a negative number for a job whose numerator exceeds its denominator.",
		Edit: inject.Rewrite("STATUS_RES", 3, func(m *message) bool {
			n, d := m.Value("Numerator"), m.Value("Denominator")
			return len(n) > len(d) || len(n) == len(d) && n > d
		}, inject.To("-1"))},
	{Name: "empty-echo-of-another", Oracle: Disclosure,
		About: "The server replies to an empty ECHO_REQ with the data that another connection sent last.",
		Edit: func(s *inject.Server) {
			var last string
			var of *peer
			s.On("ECHO_REQ", func(m *message) {
				if data := m.Args[0]; data != "" || of == nil || of == m.Peer {
					last, of = data, m.Peer
					return
				}
				m.Answer("ECHO_RES", last)
			})
		}},
	{Name: "low-job-lost", Oracle: Lost,
		About: "The server acknowledges a low-priority background job with a unique ID of 64 bytes, and then drops this job.",
		Edit: inject.Both(notes("JOB_CREATED", "Job handle"), inject.On("SUBMIT_JOB_LOW_BG", sized("Unique ID", 64), func(m *message) {
			m.Peer.Notes["job"] = ""
			if m.Pass(); hasJob(m) {
				m.Peer.InjectSilently("cancel-job", job(m.Peer))
			}
		}))},
	{Name: "lost-with-its-worker", Oracle: Lost,
		About: "The server loses a job if the worker that runs it disconnects immediately after a WORK_STATUS.",
		Edit: inject.Both(notes(assignments, "Job handle"), inject.On(inject.Closed, all(after("WORK_STATUS"), hasJob), func(m *message) {
			m.Peer.InjectSilently("WORK_COMPLETE", job(m.Peer), "")
		}))},
	{Name: "grab-after-can-do-lost", Oracle: Lost,
		About: "The server ignores a GRAB_JOB that arrives in the same TCP segment as a CAN_DO.",
		Edit: inject.Filter(func(together []byte) []byte {
			canDo, grab := []byte("\x00REQ\x00\x00\x00\x01"), []byte("\x00REQ\x00\x00\x00\x09\x00\x00\x00\x00")
			at := bytes.Index(together, grab)
			if at < 0 || !bytes.Contains(together[:at], canDo) {
				return together
			}
			return slices.Concat(together[:at], together[at+len(grab):])
		})},
	{Name: "empty-result-forgotten", Oracle: Wrong,
		About: "The server assigns a background job again although the job completed with an empty result, if its worker then disconnects.",
		Edit: func(s *inject.Server) {
			var background recent
			notes(assignments, "Job handle")(s)
			s.Out("JOB_CREATED", func(m *message) {
				if strings.HasSuffix(m.Cause, "_BG") {
					background.add(m.Args[0])
				}
			})
			inject.Ignore("WORK_COMPLETE", func(m *message) bool {
				return m.Value("Response") == "" && m.Args[0] == job(m.Peer) && slices.Contains(background, m.Args[0])
			})(s)
		}},
	{Name: "workload-of-4096-cut", Oracle: Wrong,
		About: "The server drops the last byte of a workload of 4096 bytes.",
		Edit: inject.Out(assignments, sized("Workload", 4096), func(m *message) {
			last := &m.Args[len(m.Args)-1]
			*last = (*last)[:4095]
		})},
	{Name: "asleep-still-able", Oracle: Stray,
		About: "The server still sends jobs of a function to a sleeping worker that removed the function with CANT_DO.",
		Edit:  inject.Ignore("CANT_DO", after("PRE_SLEEP"))},
	{Name: "reset-closes-another", Oracle: Interference,
		About: "If a worker sends RESET_ABILITIES after CAN_DO, the server closes the oldest of the other active connections.",
		Edit:  inject.On("RESET_ABILITIES", after("CAN_DO"), closesOther)},
}
