package servertest

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	dangaserver "jobwire/refserver/danga"
	gearmanserver "jobwire/refserver/gearman"
	"jobwire/refserver/inject"
)

type (
	mutantSpec = inject.MutantSpec
	message    = inject.Message
)

// sampleReply is a reply that edits replace.
var sampleReply = map[string][]string{
	"gearman":    {"NOOP"},
	"danga":      {"noop"},
	"beanstalk":  {"INTERNAL_ERROR"},
	"gearmonkey": {"simple", "OK"},
}

var variants = map[string][]variant{
	"gearman": {
		// "The server will then assign a job handle": it may be any text of at most 63 bytes.
		{MutantSpec: mutantSpec{Name: "handle-short", About: "Job handles are decimal numbers.", Edit: renamed(func(n int) string { return strconv.Itoa(n) })}},
		{MutantSpec: mutantSpec{Name: "handle-long", About: "Job handles have 63 bytes.", Edit: renamed(func(n int) string { return fmt.Sprintf("%063d", n) })}},
		{MutantSpec: mutantSpec{Name: "handle-characters", About: "Handles have unusual characters.",
			Edit: renamed(func(n int) string { return fmt.Sprintf("\"'$%%*#\\(){}.:\x01\x7f\xc3\xa9\xff/%d", n) })}},
		{MutantSpec: mutantSpec{Name: "handle-space", About: "Handles have spaces and line ends.",
			Edit: both(renamed(func(n int) string { return fmt.Sprintf("job %d\r\n", n) }))}, lacks: []string{"extra-admin", "show-jobs", "cancel-job"}},
		{MutantSpec: mutantSpec{Name: "handle-uuid", About: "Job handles are hexadecimal and not in ascending order.",
			Edit: renamed(func(n int) string {
				return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(n)*0x9e3779b97f4a7c15))
			})}},

		// ERROR has a "NULL byte terminated error code string" and an "Error text".
		{MutantSpec: mutantSpec{Name: "error-empty", About: "The codes and texts of errors are empty.",
			Fault: `become ERROR ERROR "" ""`}},
		{MutantSpec: mutantSpec{Name: "error-number", About: "The codes of errors are numbers, and the texts have several lines.",
			Edit: inject.Out("ERROR", nil, func(m *message) { m.Args = []string{"17", "Fehler:\n\x00\xff " + strings.Repeat("x", 5000)} })}},
		{MutantSpec: mutantSpec{Name: "error-closes", About: "The server closes the connection after the ERROR for an illegal packet.",
			Edit: inject.On(inject.Illegal, nil, closeAfter)}, customary: true},
		{MutantSpec: mutantSpec{Name: "illegal-closes", About: "The server closes the connection on an illegal packet, without ERROR.",
			Fault: "close (illegal)"}, customary: true},

		// The text protocol: "a single line", "a list", "the version of the server".
		{MutantSpec: mutantSpec{Name: "lines-lf", About: "Lines of replies end with LF.", Edit: textReplies(func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") })}},
		{MutantSpec: mutantSpec{Name: "lines-crlf", About: "Lines of replies end with CR LF.",
			Edit: textReplies(func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n") })}},
		{MutantSpec: mutantSpec{Name: "version-plain", About: "The reply to version is the version number alone.", New: gearmanWith(gearmanserver.Options{}),
			Fault: "become version-reply version-reply 1.1.20"}},
		{MutantSpec: mutantSpec{Name: "version-words", About: "The reply to version is a sentence.",
			Fault: `become version-reply version-reply "My Job Server version 12.0.3-beta4 (build 77)"`}},
		{MutantSpec: mutantSpec{Name: "lists-reversed", About: "Lists are in the reverse order.",
			Edit: both(groups("workers-reply", 4, reversed), groups("status-reply", 4, reversed), groups("prioritystatus-reply", 5, reversed), groups("show-jobs-reply", 4, reversed))}},
		{MutantSpec: mutantSpec{Name: "lists-longer", About: "Lists contain workers and functions of other peers.",
			Edit: both(
				groups("workers-reply", 4, with("3", "192.0.2.1", "-", " f1 f2"), with("4", "2001:db8::1", "someone", "")),
				groups("status-reply", 4, with("someone's", "12", "3", "4"), with("unused", "0", "0", "0")))}},
		{MutantSpec: mutantSpec{Name: "functions-sorted", About: "The functions of a worker are listed in the reverse order.",
			Edit: inject.Out("workers-reply", nil, func(m *message) {
				for i := 3; i < len(m.Args); i += 4 {
					words := strings.Fields(m.Args[i])
					slices.Reverse(words)
					if m.Args[i] = strings.Join(words, " "); len(words) > 0 {
						m.Args[i] = " " + m.Args[i]
					}
				}
			})}},
		{MutantSpec: mutantSpec{Name: "descriptors", About: "File descriptors are large numbers, addresses are IPv6 addresses, and a worker without an ID has a default ID.",
			Edit: inject.Out("workers-reply", nil, func(m *message) {
				for w := range slices.Chunk(m.Args, 4) {
					w[0], w[1] = "1"+w[0]+"000", "::ffff:"+w[1]
					if w[2] == "-" {
						w[2] = "worker-" + w[0]
					}
				}
			})}},
		{MutantSpec: mutantSpec{Name: "functions-kept", About: "The status command lists functions that have no workers and no jobs.", Edit: func(s *inject.Server) {
			var known []string
			s.Out("status-reply", func(m *message) {
				for _, name := range known {
					if !slices.ContainsFunc(slices.Collect(slices.Chunk(m.Args, 4)), func(r []string) bool { return r[0] == name }) {
						m.Args = append(m.Args, name, "0", "0", "0")
					}
				}
				for r := range slices.Chunk(m.Args, 4) {
					if !slices.Contains(known, r[0]) {
						known = append(known, r[0])
					}
				}
			})
		}}},
		{MutantSpec: mutantSpec{Name: "shutdown-silent", About: "The server does not reply to shutdown.", Fault: `drop OK when cause == "shutdown"`}},

		// Jobs.
		{MutantSpec: mutantSpec{Name: "seconds", About: "The unit of CAN_DO_TIMEOUT is the second.", New: gearmanWith(gearmanserver.Options{TimeoutUnit: time.Second})}},
		{MutantSpec: mutantSpec{Name: "five-retries", About: "A job fails when five of its workers have disconnected.", New: gearmanWith(gearmanserver.Options{Retries: 5})}},
		{MutantSpec: mutantSpec{Name: "progress-of-100", About: "A job without progress has the progress 0 of 100.",
			Fault: `alter STATUS_RES denominator=100 when numerator == "0" and denominator == "0"`}},
		{MutantSpec: mutantSpec{Name: "wakes-again", About: "Every job that a sleeping worker can run wakes the worker, even if another job has already woken it.", Edit: wakesAgain}},
		{MutantSpec: mutantSpec{Name: "last-function-first", About: "A worker with several functions first gets the jobs of the function that it registered last.", Edit: lastFunctionFirst}},
		{MutantSpec: mutantSpec{Name: "jobs-outlive-clients", About: "Foreground jobs of a client that disconnects are not dropped.",
			Fault: `drop (closed) when not any(["GRAB_JOB", "GRAB_JOB_UNIQ", "CAN_DO"], # in peer.count)`}},
		{MutantSpec: mutantSpec{Name: "half-closed-closes", About: "The server closes connections that its peer has half-closed.",
			Fault: "hangup (half-closed)"}},
		{MutantSpec: mutantSpec{Name: "results-unknown-ignored", About: "The server does not reply to reports about jobs that the worker does not have.",
			Fault: `drop ERROR when cause startsWith "WORK_"`}, customary: true},
		{MutantSpec: mutantSpec{Name: "not-merged", About: "Jobs with the same unique ID are independent.", Edit: notMerged}, customary: true, lacks: []string{"status-unique", "GET_STATUS_UNIQUE"}},
		{MutantSpec: mutantSpec{Name: "packets-to-1-gib", About: "Packets may have up to 1 GiB.", MaxData: 1 << 30, MaxLine: 1 << 20}},
		{MutantSpec: mutantSpec{Name: "packets-to-16-mib", About: "Packets may have up to 16 MiB, and lines up to 1 KiB.", MaxData: 16 << 20, MaxLine: 1 << 10}, customary: true},
	},

	"danga": {
		// The draft says only this of a job handle: "[ ascii job handle, valid only for current job server ]".
		{MutantSpec: mutantSpec{Name: "handle-short", About: "Job handles are decimal numbers.", Edit: renamed(func(n int) string { return strconv.Itoa(n) })}},
		{MutantSpec: mutantSpec{Name: "handle-long", About: "Job handles have 1000 bytes.", Edit: renamed(func(n int) string { return fmt.Sprintf("%01000d", n) })}},
		{MutantSpec: mutantSpec{Name: "handle-characters", About: "Handles have unusual characters.", Edit: renamed(func(n int) string { return fmt.Sprintf(" \t\r\n\"'$*#\\\x01\x7f/%d ", n) })}},
		{MutantSpec: mutantSpec{Name: "handle-in-no-order", About: "Job handles are not in ascending order.",
			Edit: renamed(func(n int) string {
				return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, uint32(n)*2654435761))
			})}},
		{MutantSpec: mutantSpec{Name: "wakes-one", About: "A job wakes only one of the sleeping workers.", Edit: wakesOne}, customary: true},
		{MutantSpec: mutantSpec{Name: "elapsed-rounded-up", About: "The elapsed time of a job is rounded up.",
			Fault: `alter job_complete_res job_status={big_endian(from_big_endian(job_status) + 1)} when cause == "job_complete_req" and from_big_endian(job_status) > 0`}},
		// No packet type means "no, sorry".
		{MutantSpec: mutantSpec{Name: "no-job-silence", About: "If there is no job, the server does not reply to a worker that requests one.",
			Fault: `drop noop when cause == "job_assign_req"`}},
		{MutantSpec: mutantSpec{Name: "no-job-yet", About: "If there is no job, the server replies to a worker that requests one as soon as a job arrives.", Edit: repliesLater}},
		{MutantSpec: mutantSpec{Name: "no-progress-no-ratio", About: "The server reports a job without progress as 0 of 0 complete.", Edit: progressOf(0, 1, 1<<32-1, 0, 0, 1<<32-1)}},
		{MutantSpec: mutantSpec{Name: "no-progress-percent", About: "The server reports a job without progress as 0 of 100 complete.", Edit: progressOf(0, 1, 1<<32-1, 0, 100, 1<<32-1)}},
		{MutantSpec: mutantSpec{Name: "time-unknown-zero", About: "The server reports an unknown time remaining as 0.", Edit: progressOf(0, 1, 1<<32-1, 0, 1, 0)}},
		{MutantSpec: mutantSpec{Name: "illegal-ignored", About: "The server ignores illegal packets.", Fault: "drop (illegal)"}},
		{MutantSpec: mutantSpec{Name: "results-for-a-minute", About: "The server keeps at most 20 results, each for a minute.", New: func() refserver.Machine {
			return dangaserver.New(dangaserver.Options{KeepTime: time.Minute, KeepCount: 20})
		}}},
		{MutantSpec: mutantSpec{Name: "half-closed-closes", About: "The server closes connections that its peer has half-closed.",
			Fault: "hangup (half-closed)"}},
		{MutantSpec: mutantSpec{Name: "packets-to-1-gib", About: "Packets may have up to 1 GiB.", MaxData: 1 << 30}},
		{MutantSpec: mutantSpec{Name: "packets-to-16-mib", About: "Packets may have up to 16 MiB.", MaxData: 16 << 20}},
	},

	"beanstalk": {
		// "<id> is the integer id of the new job": any integer.
		{MutantSpec: mutantSpec{Name: "ids-with-gaps", About: "Job IDs have gaps.", Edit: renamed(func(n int) string { return strconv.Itoa(1000 + 7*n) })}},
		{MutantSpec: mutantSpec{Name: "ids-from-0", About: "Job IDs begin at 0.", Edit: renamed(func(n int) string { return strconv.Itoa(n - 1) })}},
		{MutantSpec: mutantSpec{Name: "ids-large", About: "Job IDs are near 2^64 and become smaller.", Edit: renamed(func(n int) string { return strconv.FormatUint(1<<64-2-uint64(n)*3, 10) })}},
		{MutantSpec: mutantSpec{Name: "ids-random", About: "Job IDs are not in ascending order.", Edit: renamed(func(n int) string { return strconv.FormatUint(uint64(n)*0x9e3779b97f4a7c15, 10) })}},

		// "It is a YAML file": any notation that YAML has for a dictionary, or a list, of scalars.
		{MutantSpec: mutantSpec{Name: "yaml-double", About: "Scalars are in double quotes.", Edit: yaml(func(d *document) { d.key, d.value = doubleQuoted, doubleQuoted })}},
		{MutantSpec: mutantSpec{Name: "yaml-single", About: "Scalars are in single quotes.", Edit: yaml(func(d *document) { d.key, d.value = single, single })}},
		{MutantSpec: mutantSpec{Name: "yaml-escaped", About: "Scalars are in double quotes, with escape sequences and comments.", Edit: yaml(func(d *document) { d.key, d.value, d.comment = escaped, escaped, "   # comment" })}},
		{MutantSpec: mutantSpec{Name: "yaml-values", About: "Only values are quoted, in different ways.", Edit: yaml(func(d *document) { d.value = mixed() })}},
		{MutantSpec: mutantSpec{Name: "yaml-reversed", About: "The entries of YAML documents are in the reverse order.", Edit: yaml(func(d *document) { slices.Reverse(d.entries) })}},
		{MutantSpec: mutantSpec{Name: "yaml-extra", About: "Statistics have additional keys.", Edit: yaml(func(d *document) {
			if d.keyed {
				d.entries = slices.Concat([][]string{{"a", "~"}, {"empty", ""}, {"os.name", "Linux"}}, d.entries, [][]string{{"job", "a: b # c"}, {"stats", "0.5"}, {"current-jobs", "-1"}, {"flag", "true"}, {"größe in MB", "1e3"}, {"\"a: b\"", "null"}})
			}
		})}},
		{MutantSpec: mutantSpec{Name: "yaml-spaces", About: "YAML entries are indented, with spaces around values.", Edit: yaml(func(d *document) { d.indent, d.space, d.after = "  ", "    ", "  " })}},
		{MutantSpec: mutantSpec{Name: "yaml-comments", About: "YAML documents contain comments and empty lines.", Edit: yaml(func(d *document) {
			d.start, d.comment, d.line = "# statistics\n---  # of the server\n\n", " # a comment: yes", "# next\n\n"
		})}},
		{MutantSpec: mutantSpec{Name: "yaml-crlf", About: "Lines of YAML documents end with CR LF.", Edit: yaml(func(d *document) { d.lf = "\r\n" })}},
		{MutantSpec: mutantSpec{Name: "yaml-no-start", About: "YAML documents have no start marker, and their last line has no line end.", Edit: yaml(func(d *document) { d.start, d.cut = "", true })}},
		{MutantSpec: mutantSpec{Name: "yaml-end", About: "YAML documents have an end marker.", Edit: yaml(func(d *document) { d.end = "...\n" })}},
		{MutantSpec: mutantSpec{Name: "yaml-flow", About: "YAML entries are in brackets, in flow style.", Edit: yaml(func(d *document) { d.flow = true })}},
		{MutantSpec: mutantSpec{Name: "yaml-json", About: "YAML documents are also valid JSON.", Edit: yaml(func(d *document) { d.start, d.flow, d.key, d.value = "", true, doubleQuoted, doubleQuoted })}},

		{MutantSpec: mutantSpec{Name: "tubes-reversed", About: "Lists of tubes are in the reverse order.", Edit: inject.Out("list-reply", nil, func(m *message) { slices.Reverse(m.Args) })}},
		{MutantSpec: mutantSpec{Name: "rounded-up", About: "The times left in statistics are rounded up to whole seconds.",
			// With the slow reader, the time between two requests is not a whole number of seconds.
			Edit: both(statistic("time-left", plusOne), statistic("pause-time-left", plusOne), slowReader(time.Millisecond))}},
		{MutantSpec: mutantSpec{Name: "time-left-of-ready", About: "time-left of a job that is neither reserved nor delayed is a number without meaning.",
			Fault: `alter stats-reply [time-left]=4294967295 when cause == "stats-job" and pairs(message.args).state in ["ready", "buried"]`}},
		{MutantSpec: mutantSpec{Name: "identity", About: "The version, the ID and the host name have other forms.", Edit: both(
			statistic("version", to("1.13-rc1+git.2f")), statistic("hostname", to(`"büro-pc.example.org"`)),
			statistic("pid", to("1")), statistic("binlog-max-size", to("10485760")), statistic("rusage-utime", to("12345.999999")))}},
		{MutantSpec: mutantSpec{Name: "without-extras", About: "Statistics have only the keys of the specification.", Edit: inject.Out("stats-reply", nil, func(m *message) {
			for _, key := range []string{"cmd-reserve-with-timeout", "cmd-touch", "draining", "os", "platform", "delay"} {
				if i := slices.Index(m.Args, key); i >= 0 {
					if n := slices.Index(m.Args, "cmd-reserve"); key == "cmd-reserve-with-timeout" { // the variant counts a reserve-with-timeout as a reserve
						m.Args[n+1] = strconv.Itoa(inject.Number(m.Args[n+1]) + inject.Number(m.Args[i+1]))
					}
					m.Args = slices.Delete(m.Args, i, i+2)
				}
			}
		})}},
		{MutantSpec: mutantSpec{Name: "size-limit-excluded", About: "max-job-size is the smallest size that is too large, and a line may have 64 KiB.", MaxLine: 64 << 10,
			Edit: statistic("max-job-size", to("65536"))}},
		{MutantSpec: mutantSpec{Name: "smaller-lines", About: "A line may have up to 224 bytes.", MaxLine: 224}},
		{MutantSpec: mutantSpec{Name: "deadline-first", About: "reserve in the safety margin replies DEADLINE_SOON even if a job is ready.", Edit: deadlineFirst}},
		// "commands with single spaces only": what another white space means is left open.
		{MutantSpec: mutantSpec{Name: "white-space", About: "The server reads any white space between words as one space, and ignores it around a line.",
			Fault: `reread (illegal) {replace_all(trim(raw), "[ \\t]+", " ")}"\r\n" when raw matches "^[ \\t]|[ \\t]{2}|\\t|[ \\t]\\r\\n$" and not (raw contains "put")`}},
		// "BAD_FORMAT": a server that looks up the whole line does not know a command with extra arguments.
		{MutantSpec: mutantSpec{Name: "surplus-unknown", About: "The server replies UNKNOWN_COMMAND to commands with a wrong number of arguments.",
			Fault: `answer (illegal) UNKNOWN_COMMAND when violates == "beanstalk.command.arguments" and not (raw matches "^put|  | \\r")`}},
		// "reserve-with-timeout <seconds>": the specification does not say how large the number may be.
		{MutantSpec: mutantSpec{Name: "timeouts-of-31-bits", About: "The server rejects a timeout of 2^31 seconds or more.",
			Fault: "answer reserve-with-timeout BAD_FORMAT when number(timeout) >= 2147483648"}},
		{MutantSpec: mutantSpec{Name: "no-reserve-job", About: "The server does not know reserve-job, which the specification does not contain.", Fault: "answer reserve-job UNKNOWN_COMMAND"}},
		// "<tube> is a name at most 200 bytes", which the specification says of use, watch and stats-tube.
		{MutantSpec: mutantSpec{Name: "names-without-limit", About: "Tube names have no length limit in the commands for which the specification gives none.", Edit: inject.On(inject.Illegal, nil, func(m *message) {
			switch text := m.Text(); {
			case pauseOfLongName.MatchString(text):
				m.Answer("NOT_FOUND")
			case ignoreOfLongName.MatchString(text):
				m.Answer("WATCHING", "2")
			}
		})}},
		// "BAD_FORMAT ... if the line does not end with \r\n".
		{MutantSpec: mutantSpec{Name: "lines-end-at-lf", About: "The server rejects each line that ends with LF alone.", Edit: inject.On(inject.Illegal, nil, func(m *message) {
			if line, rest, ok := strings.Cut(m.Text(), "\n"); ok && !strings.HasSuffix(line, "\r") && !strings.HasPrefix(line, "put ") {
				m.Answer("BAD_FORMAT")
				m.Peer.Feed(rest)
			}
		})}},
		// "NOT_FOUND ... if the job does not exist or is not either reserved by the client, ready, or buried".
		{MutantSpec: mutantSpec{Name: "delayed-not-deleted", About: "delete does not find delayed jobs.",
			Fault: `answer delete NOT_FOUND when "delayed" in ask(peer, "stats-job", job_id).args`}},
		// "it will be deleted": the specification does not say when.
		{MutantSpec: mutantSpec{Name: "tubes-deleted-later", About: "Tubes are deleted up to a second after their last use.", Edit: deletedLater}},
		{MutantSpec: mutantSpec{Name: "ticks", About: "The server looks at its clock once a second.", New: func() refserver.Machine { return ticking{beanstalkserver.New(beanstalkserver.Options{})} }}},
	},

	"gearmonkey": {
		{MutantSpec: mutantSpec{Name: "errors-in-other-words", About: "Error replies have other texts.", Edit: bulkReplies("*", func(s string) string {
			if code, rest, ok := strings.Cut(s, " "); ok && s[0] == '-' && !strings.Contains(rest, "Protocol error") {
				return code + " something went wrong: (1)\r\n"
			}
			return s
		})}},
		{MutantSpec: mutantSpec{Name: "protocol-errors", About: "Error replies to invalid framing have other texts.", Edit: bulkReplies("*", func(s string) string {
			if strings.Contains(s, "Protocol error") {
				return "-ERR cannot read this\r\n"
			}
			return s
		})}},
		{MutantSpec: mutantSpec{Name: "protocol-errors-close", About: "After invalid framing, the server closes the connection without an error reply.",
			Fault: `close (illegal) when violates startsWith "resp." and violates != "resp.request.not-empty"`}},
		{MutantSpec: mutantSpec{Name: "fields-reversed", About: "A hash lists its fields in the reverse order.", Edit: bulkReplies("HGETALL", reversedPairs)}},
		{MutantSpec: mutantSpec{Name: "seconds-rounded-down", About: "The time that a key has left is rounded down.", Edit: bulkReplies("TTL", func(s string) string {
			if n := inject.Number(strings.TrimPrefix(s, ":")); n > 0 {
				return fmt.Sprintf(":%d\r\n", n-1)
			}
			return s
		})}},
		{MutantSpec: mutantSpec{Name: "inline-to-1-mib", About: "Inline commands may have up to 1 MiB.", MaxLine: 1 << 20}},
		{MutantSpec: mutantSpec{Name: "requests-to-1-gib", About: "Requests may have up to 1 GiB.", MaxData: 1 << 30}},
	},
}

func to(v string) func(string) string { return func(string) string { return v } }

func both(edits ...inject.Edit) inject.Edit { return inject.Both(edits...) }

func gearmanWith(o gearmanserver.Options) func() refserver.Machine {
	return func() refserver.Machine { return gearmanserver.New(o) }
}

func fourBytes(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

var (
	pauseOfLongName  = regexp.MustCompile(`^pause-tube \w{201,} \d+\r\n$`)
	ignoreOfLongName = regexp.MustCompile(`^ignore \w{201,}\r\n$`)
)

// deletedLater returns the statistics of a tube for up to a second after the server has deleted the tube.
func deletedLater(s *inject.Server) {
	seen, used, of := map[string]time.Time{}, map[*inject.Peer]string{}, map[string]string{} // last use by tube, used tube by peer, tube by job
	s.On("use", func(m *message) {
		seen[used[m.Peer]] = time.Now()
		used[m.Peer] = m.Args[0]
	})
	s.On("watch", func(m *message) { seen[m.Args[0]] = time.Now() })
	s.On("ignore", func(m *message) {
		if !seen[m.Args[0]].IsZero() {
			seen[m.Args[0]] = time.Now()
		}
	})
	s.On("delete", func(m *message) { seen[of[m.Args[0]]] = time.Now() })
	s.On(inject.Closed, func(m *message) { seen[used[m.Peer]] = time.Now() })
	s.Out("INSERTED", func(m *message) { of[m.Args[0]] = used[m.Peer] })
	s.On("stats-tube", func(m *message) {
		if time.Since(seen[m.Args[0]]) < time.Second && string(m.Peer.Ask("stats-tube", m.Args[0]).Raw) == "NOT_FOUND\r\n" {
			m.Answer("stats-reply", "name", m.Args[0])
		}
	})
}

// repliesLater delays the replies to workers that request a job, if there is none, until an application creates a job.
func repliesLater(s *inject.Server) {
	waiting, giving := map[*inject.Peer]bool{}, false
	s.Out("noop", func(m *message) {
		if m.Cause == "job_assign_req" || giving && waiting[m.Peer] {
			m.Drop()
			waiting[m.Peer] = true
		}
	})
	s.Out("job_assign_res", func(m *message) { delete(waiting, m.Peer) })
	s.On("worker_connect worker_disconnect worker_sleep "+inject.Closed, func(m *message) { delete(waiting, m.Peer) })
	s.On("job_create_req", func(m *message) {
		m.Pass()
		giving = true
		for p := range waiting {
			if !p.Left {
				p.Inject("job_assign_req")
			}
		}
		giving = false
	})
}

// ticking is a server whose timers fire once a second.
type ticking struct{ *beanstalkserver.Machine }

func (t ticking) Next() time.Time {
	next := t.Machine.Next()
	if next.IsZero() {
		return next
	}
	return next.Truncate(time.Second).Add(time.Second)
}

// closeAfter passes an illegal message to the machine and closes the connection.
func closeAfter(m *message) {
	m.Drop()
	m.Server.Machine.Reject(m.Peer.Conn, m.Frame, m.Err)
	m.Peer.Close()
}

// renamed gives jobs other IDs, by their number.
func renamed(id func(n int) string) inject.Edit {
	return func(s *inject.Server) {
		out, in := map[string]string{}, map[string]string{} // IDs of the machine, and IDs that peers receive
		known := func(machine, peer string) string {
			out[machine], in[peer] = peer, machine
			return machine
		}
		outward := func(v string) string {
			if out[v] == "" {
				known(v, id(len(out)+1))
			}
			return out[v]
		}
		inward := func(v string) string {
			if in[v] == "" { // the machine does not accept such large numbers
				return known(strconv.FormatUint(1<<64-1-uint64(len(out)), 10), v)
			}
			return in[v]
		}
		each := func(m *message, change func(string) string) {
			for i := range m.Args {
				if f := m.Frame.Type.FieldAt(i); f != nil && f.Means == codec.JobID && m.Args[i] != "" {
					m.Args[i] = change(m.Args[i])
				}
			}
		}
		s.On("*", func(m *message) { each(m, inward) })
		s.Out("*", func(m *message) {
			each(m, outward)
			if i := slices.Index(m.Args, "id"); m.Cause == "stats-job" && i >= 0 && i < len(m.Args)-1 {
				m.Args[i+1] = outward(m.Args[i+1])
			}
		})
	}
}

// textReplies changes the bytes of replies of the text protocol.
func textReplies(change func(string) string) inject.Edit {
	return inject.Out("*", func(m *message) bool { return m.Frame.Type.Code == 0 }, func(m *message) { m.Raw = []byte(change(string(m.Frame.Raw))) })
}

// bulkReplies changes the bytes of replies to a command. "*" means every command.
func bulkReplies(command string, change func(string) string) inject.Edit {
	return inject.Out("*", nil, func(m *message) {
		if command == "*" || m.Request != nil && strings.Contains("\n"+strings.ToUpper(m.Request.Text()), "\n"+command+"\r\n") {
			m.Raw = []byte(change(string(m.Frame.Raw)))
		}
	})
}

// groups changes a list whose entries have n values each.
func groups(reply string, n int, changes ...func([][]string) [][]string) inject.Edit {
	return inject.Out(reply, nil, func(m *message) {
		rows := slices.Collect(slices.Chunk(m.Args, n))
		for _, change := range changes {
			rows = change(rows)
		}
		m.Args = slices.Concat(rows...)
	})
}

func reversed(rows [][]string) [][]string {
	rows = slices.Clone(rows)
	slices.Reverse(rows)
	return rows
}

// with inserts an entry at the beginning of a list.
func with(row ...string) func([][]string) [][]string {
	return func(rows [][]string) [][]string { return slices.Insert(slices.Clone(rows), 0, row) }
}

// wakesAgain sends a NOOP for each job to all sleeping workers that can do it, also to those that have already received
// one.
func wakesAgain(s *inject.Server) {
	asleep := map[*inject.Peer]bool{}
	able := map[*inject.Peer]map[string]bool{}
	s.On("PRE_SLEEP", func(m *message) { asleep[m.Peer] = true })
	s.On("GRAB_JOB GRAB_JOB_UNIQ GRAB_JOB_ALL", func(m *message) { delete(asleep, m.Peer) })
	s.On("CAN_DO CAN_DO_TIMEOUT", func(m *message) {
		if able[m.Peer] == nil {
			able[m.Peer] = map[string]bool{}
		}
		able[m.Peer][m.Args[0]] = true
	})
	s.On("CANT_DO", func(m *message) { delete(able[m.Peer], m.Args[0]) })
	s.On("RESET_ABILITIES", func(m *message) { delete(able, m.Peer) })
	s.On("SUBMIT_JOB SUBMIT_JOB_BG SUBMIT_JOB_HIGH SUBMIT_JOB_LOW SUBMIT_JOB_HIGH_BG SUBMIT_JOB_LOW_BG", func(m *message) {
		m.Pass()
		for _, p := range s.Peers {
			if asleep[p] && able[p][m.Args[0]] {
				p.Send("NOOP")
			}
		}
	})
}

// lastFunctionFirst registers the functions of a worker in the reverse order.
func lastFunctionFirst(s *inject.Server) {
	able := map[*inject.Peer][][]string{}
	s.On("CAN_DO CAN_DO_TIMEOUT", func(m *message) {
		before := slices.DeleteFunc(able[m.Peer], func(f []string) bool { return f[1] == m.Args[0] })
		able[m.Peer] = append([][]string{append([]string{m.Name}, m.Args...)}, before...)
		if len(before) == 0 {
			return
		}
		m.Peer.InjectSilently("RESET_ABILITIES")
		m.Pass()
		for _, f := range before {
			m.Peer.Inject(f[0], f[1:]...)
		}
	})
	s.On("CANT_DO", func(m *message) {
		able[m.Peer] = slices.DeleteFunc(able[m.Peer], func(f []string) bool { return f[1] == m.Args[0] })
	})
	s.On("RESET_ABILITIES", func(m *message) { delete(able, m.Peer) })
}

// notMerged removes the unique IDs from submissions, so that the server does not combine them.
func notMerged(s *inject.Server) {
	unique := map[string]string{} // by handle
	var last string
	s.On("*", func(m *message) {
		if strings.HasPrefix(m.Name, "SUBMIT_") {
			last, m.Args[1] = m.Args[1], ""
		}
	})
	s.Out("JOB_CREATED", func(m *message) { unique[m.Args[0]] = last })
	s.Out("JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL", func(m *message) { m.Args[2] = unique[m.Args[0]] })
}

// wakesOne makes a job wake only one worker.
func wakesOne(s *inject.Server) {
	woken := 0
	s.On("job_create_req", func(m *message) {
		woken = 0
		m.Pass()
	})
	s.Out("noop", func(m *message) {
		if m.Cause == "job_create_req" {
			if woken++; woken > 1 {
				m.Drop()
			}
		}
	})
}

// progressOf replaces the numbers of replies to job_status_req that have the first three numbers with the last three
// numbers.
func progressOf(numbers ...uint32) inject.Edit {
	var all []string
	for _, n := range numbers {
		all = append(all, fourBytes(n))
	}
	return inject.Out("job_status_res", func(m *message) bool { return m.Cause == "job_status_req" && slices.Equal(m.Args, all[:3]) },
		func(m *message) { m.Args = slices.Clone(all[3:]) })
}

// document is a YAML document in one of several notations.
type document struct {
	entries        [][]string // a value, or a key and a value
	keyed          bool
	key, value     func(string) string
	start, end     string
	line, indent   string // before an entry
	space          string // before a value
	after, comment string // after a value
	lf             string
	cut, flow      bool
}

// yaml converts replies with YAML to another notation.
func yaml(change func(*document)) inject.Edit {
	return inject.Out("stats-reply list-reply", nil, func(m *message) {
		plain := func(s string) string { return s }
		d := document{keyed: m.Name == "stats-reply", key: plain, value: plain, start: "---\n", space: " ", lf: "\n"}
		d.entries = slices.Collect(slices.Chunk(m.Args, 1))
		if d.keyed {
			d.entries = slices.Collect(slices.Chunk(m.Args, 2))
		}
		change(&d)
		body := d.text()
		m.Raw = fmt.Appendf(nil, "OK %d\r\n%s\r\n", len(body), body)
	})
}

func (d *document) text() string {
	var b strings.Builder
	quote := func(v string) string {
		v = strings.Trim(v, `"'`)
		if q := d.value(v); q != v || !strings.ContainsAny(v, "#:[]{},") {
			return q
		}
		return doubleQuoted(v)
	}
	for i, e := range d.entries {
		if d.flow {
			b.WriteString(cmp.Or(map[bool]string{true: ", "}[i > 0], map[bool]string{true: "{", false: "["}[d.keyed]))
		} else {
			b.WriteString(d.line + d.indent)
			if !d.keyed {
				b.WriteString("-" + d.space)
			}
		}
		if d.keyed {
			b.WriteString(d.key(e[0]) + ":" + d.space)
		}
		b.WriteString(quote(e[len(e)-1]))
		if !d.flow {
			b.WriteString(d.after + d.comment + "\n")
		}
	}
	if d.flow {
		b.WriteString(map[bool]string{true: "}\n", false: "]\n"}[d.keyed])
	}
	text := d.start + b.String() + d.end
	if d.cut {
		text = strings.TrimSuffix(text, "\n")
	}
	return strings.ReplaceAll(text, "\n", d.lf)
}

func doubleQuoted(s string) string { return `"` + s + `"` }
func single(s string) string       { return `'` + s + `'` }
func escaped(s string) string {
	if s == "" {
		return `""`
	}
	return fmt.Sprintf(`"\x%02x%s"`, s[0], s[1:])
}

// mixed returns a function that quotes each value in another way than the previous value.
func mixed() func(string) string {
	n := 0
	return func(s string) string {
		n++
		return []func(string) string{doubleQuoted, single, escaped}[n%3](s)
	}
}

// statistic changes the value of a key.
func statistic(key string, change func(string) string) inject.Edit {
	return inject.Out("stats-reply", nil, func(m *message) {
		for pair := range slices.Chunk(m.Args, 2) {
			if pair[0] == key {
				pair[1] = change(pair[1])
			}
		}
	})
}

func plusOne(v string) string {
	if v == "0" {
		return v
	}
	return strconv.Itoa(inject.Number(v) + 1)
}

// deadlineFirst replies DEADLINE_SOON to a worker that has a job in the last second of its time-to-run, even if another
// job is ready.
func deadlineFirst(s *inject.Server) {
	worker := map[string]*inject.Peer{} // by job
	s.Out("RESERVED", func(m *message) { worker[m.Args[0]] = m.Peer })
	s.On("delete release bury", func(m *message) { delete(worker, m.Args[0]) })
	s.On("reserve reserve-with-timeout", func(m *message) {
		for job, p := range worker {
			if p != m.Peer {
				continue
			}
			stats := m.Peer.Ask("stats-job", job).Args
			if slices.Contains(stats, "reserved") && stats[slices.Index(stats, "time-left")+1] == "0" {
				m.Answer("DEADLINE_SOON")
				return
			}
		}
	})
}

// reversedPairs reverses the order of the pairs in an array of bulk strings.
func reversedPairs(reply string) string {
	head, rest, _ := strings.Cut(reply, "\r\n")
	var items []string
	for strings.HasPrefix(rest, "$") {
		size, body, _ := strings.Cut(rest, "\r\n")
		n := inject.Number(size[1:]) + len("\r\n")
		items = append(items, size+"\r\n"+body[:n])
		rest = body[n:]
	}
	pairs := slices.Collect(slices.Chunk(items, 2))
	slices.Reverse(pairs)
	return head + "\r\n" + strings.Join(slices.Concat(pairs...), "") + rest
}
