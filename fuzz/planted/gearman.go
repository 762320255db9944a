package planted

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"jobwire/codec/gearman"
)

const (
	submissions  = "SUBMIT_JOB SUBMIT_JOB_HIGH SUBMIT_JOB_LOW"
	backgrounded = "SUBMIT_JOB_BG SUBMIT_JOB_HIGH_BG SUBMIT_JOB_LOW_BG"
	assignments  = "JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL"
)

// inGearman are the faults of Gearman servers.
var inGearman = []Fault{
	{Name: "report-to-nobody", Protocol: "gearman", Oracle: Exit,
		About: "The failure of a job whose client has broken off breaks an assertion.",
		Hook: func(b *bench) {
			var widowed recent
			b.out(assignments, has)
			b.out("JOB_CREATED", func(p *peer, f *frame) verdict {
				p.mark = true // p.job is its own, and no worker's
				return has(p, f)
			})
			b.left = func(p *peer) {
				if p.mark {
					widowed.add(p.job)
				}
			}
			b.on("WORK_FAIL", func(p *peer, f *frame) {
				if p.job == arg(f, "Job handle") && widowed.has(p.job) {
					exits(1, "job.cc:212: assertion failed: client != NULL\n")(b, p)
				}
				b.pass(p, f)
			})
		}},
	{Name: "type-below-zero", Protocol: "gearman", Oracle: Signal,
		About: "A packet type is read as a signed number, and one below zero as an index.",
		Hook:  refused(gearman.RuleTypeKnown, killedBy("SEGV", ""), func(_ *peer, f *frame) bool { return len(f.Raw) > 4 && f.Raw[4] >= 0x80 })},
	{Name: "drop-function-with-jobs", Protocol: "gearman", Oracle: Signal,
		About: "A function that is dropped while it has jobs is freed twice.",
		Hook: func(b *bench) {
			var used recent
			b.on(submissions+" "+backgrounded, func(p *peer, f *frame) {
				used.add(arg(f, "Function"))
				b.pass(p, f)
			})
			b.on("drop-function", func(p *peer, f *frame) {
				if used.has(arg(f, "Function")) {
					killedBy("ABRT", "free(): double free detected in tcache 2\n")(b, p)
				}
				b.pass(p, f)
			})
		}},
	{Name: "client-id-of-64", Protocol: "gearman", Oracle: Sanitizer,
		About: "The NUL behind a client ID of 64 bytes is written behind its buffer.",
		Hook: upon("SET_CLIENT_ID", exits(1, `=================================================================
==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x606000000060 at pc 0x5581 bp 0x7ffd sp 0x7ffd
WRITE of size 1 at 0x606000000060 thread T0
    #0 0x5581 in set_client_id worker.cc:41
SUMMARY: AddressSanitizer: heap-buffer-overflow worker.cc:41 in set_client_id
`), sized("Client ID", 64))},
	{Name: "timeout-overflows", Protocol: "gearman", Oracle: Sanitizer,
		About: "A timeout of 2147483648 or more does not fit the server's number.",
		Hook: upon("CAN_DO_TIMEOUT", prints("worker.cc:88:31: runtime error: signed integer overflow: 2147483648 * 1000 cannot be represented in type 'int'\n"),
			atLeast("Timeout", 1<<31))},
	{Name: "reset-while-asleep", Protocol: "gearman", Oracle: Hang,
		About: "A worker that resets its abilities while it is asleep is not heard any more.",
		Hook:  upon("RESET_ABILITIES", deafens, after("CAN_DO PRE_SLEEP"))},
	{Name: "handle-of-63-blocks", Protocol: "gearman", Oracle: ServerHang,
		About: "A GET_STATUS of a handle of 63 bytes, the most there may be, blocks the server.",
		Hook:  upon("GET_STATUS", blocks, sized("Job handle", 63))},
	{Name: "half-closed-client-blocks", Protocol: "gearman", Oracle: ServerHang,
		About: "A client that ends its direction behind a submission blocks the server.",
		Hook:  halving(blocks, after("SUBMIT_JOB"))},
	{Name: "twice-asleep-spins", Protocol: "gearman", Oracle: Spin,
		About: "A worker that goes to sleep twice in a row wakes the server for ever.",
		Hook:  upon("PRE_SLEEP", spins, after("PRE_SLEEP"))},
	{Name: "option-kept", Protocol: "gearman", Oracle: Memory,
		About: "Each option that is set takes memory for good.",
		Hook:  upon("OPTION_REQ", leaks, is("Option", "exceptions"))},
	{Name: "sleeper-keeps-descriptor", Protocol: "gearman", Oracle: Descriptors,
		About: "A worker that leaves while it is asleep leaves a descriptor behind.",
		Hook:  leaving(leaksDescriptor, after("PRE_SLEEP"))},
	{Name: "empty-unique-without-nul", Protocol: "gearman", Oracle: Framing,
		About: "An empty unique ID is left out of the packet that assigns the job, with its NUL.",
		Hook: told("JOB_ASSIGN_UNIQ", func(_ *bench, _ *peer, f *frame) verdict {
			a := args(f)
			data := strings.Join([]string{a[0], a[1], a[3]}, "\x00")
			return raw(string(f.Raw[:8]) + string(binary.BigEndian.AppendUint32(nil, uint32(len(data)))) + data)
		}, is("Unique ID", ""))},
	{Name: "progress-beyond-its-end", Protocol: "gearman", Oracle: Rule,
		About: "The status of a job whose numerator exceeds its denominator has a number below zero.",
		Hook: told("STATUS_RES", func(b *bench, _ *peer, f *frame) verdict { return b.changed(f, 3, "-1") }, func(_ *peer, f *frame) bool {
			n, d := arg(f, "Numerator"), arg(f, "Denominator")
			return len(n) > len(d) || len(n) == len(d) && n > d
		})},
	{Name: "empty-echo-of-another", Protocol: "gearman", Oracle: Disclosure,
		About: "An empty ECHO_REQ is answered with what another connection had echoed last.",
		Hook: func(b *bench) {
			var last string
			var of *peer
			b.on("ECHO_REQ", func(p *peer, f *frame) {
				data := arg(f, "Data")
				if data == "" && of != nil && of != p {
					b.say(p, "ECHO_RES", last)
					return
				}
				last, of = data, p
				b.pass(p, f)
			})
		}},
	{Name: "low-job-lost", Protocol: "gearman", Oracle: Lost,
		About: "A background job of low priority whose unique ID has 64 bytes is acknowledged and forgotten.",
		Hook: func(b *bench) {
			b.on("SUBMIT_JOB_LOW_BG", func(p *peer, f *frame) {
				p.job = ""
				b.pass(p, f)
				if sized("Unique ID", 64)(p, f) && p.job != "" {
					b.secretly(func() { b.give(p, "cancel-job", p.job) })
				}
			})
			b.out("JOB_CREATED", has)
		}},
	{Name: "lost-with-its-worker", Protocol: "gearman", Oracle: Lost,
		About: "A job whose worker leaves right behind a WORK_STATUS is lost.",
		Hook: func(b *bench) {
			b.out(assignments, has)
			b.left = func(p *peer) {
				if after("WORK_STATUS")(p, nil) && p.job != "" {
					b.secretly(func() { b.give(p, "WORK_COMPLETE", p.job, "") })
				}
			}
		}},
	{Name: "grab-behind-can-do-lost", Protocol: "gearman", Oracle: Lost,
		About: "A GRAB_JOB that comes together with a CAN_DO, before anything was answered, is overlooked.",
		Hook: func(b *bench) {
			canDo, grab := []byte("\x00REQ\x00\x00\x00\x01"), []byte("\x00REQ\x00\x00\x00\x09\x00\x00\x00\x00")
			b.read = func(together []byte) []byte {
				at := bytes.Index(together, grab)
				if at < 0 || !bytes.Contains(together[:at], canDo) {
					return together
				}
				return slices.Concat(together[:at], together[at+len(grab):])
			}
		}},
	{Name: "empty-result-forgotten", Protocol: "gearman", Oracle: Wrong,
		About: "A background job that completes with an empty response is given to another worker when its own leaves.",
		Hook: func(b *bench) {
			var alone recent // jobs that nobody waits for
			b.out(assignments, has)
			b.out("JOB_CREATED", func(p *peer, f *frame) verdict {
				if strings.HasSuffix(p.now, "_BG") {
					alone.add(arg(f, "Job handle"))
				}
				return verdict{}
			})
			b.on("WORK_COMPLETE", func(p *peer, f *frame) {
				if job := arg(f, "Job handle"); arg(f, "Response") != "" || job != p.job || !alone.has(job) {
					b.pass(p, f)
				}
			})
		}},
	{Name: "workload-of-4096-cut", Protocol: "gearman", Oracle: Wrong,
		About: "The last byte of a workload of 4096 bytes is cut off.",
		Hook: told(assignments, func(b *bench, _ *peer, f *frame) verdict {
			return b.changed(f, len(args(f))-1, arg(f, "Workload")[:4095])
		}, sized("Workload", 4096))},
	{Name: "asleep-still-able", Protocol: "gearman", Oracle: Stray,
		About: "A worker that is asleep goes on being given jobs of a function that it cannot do any more.",
		Hook:  instead("CANT_DO", overlook, after("PRE_SLEEP"))},
	{Name: "reset-closes-another", Protocol: "gearman", Oracle: Disturbance,
		About: "RESET_ABILITIES behind CAN_DO ends the oldest of the other connections in use.",
		Hook:  upon("RESET_ABILITIES", closesOther, after("CAN_DO"))},
}

// has notes which job a peer has been told of.
func has(p *peer, f *frame) verdict {
	p.job = arg(f, "Job handle")
	return verdict{}
}
