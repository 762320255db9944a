package beanstalk

import (
	"context"
	"io"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/refpeer/internal/peer"
)

// Options are what the protocol leaves to clients, and faults, in addition to those of package peer.
type Options struct {
	InPieces   bool // a client that waits for a job sends several reserve commands, which wait for at most Piece seconds
	Piece      int
	ByID       bool // jobs are found with peek-ready and reserved with reserve-job
	Reconnects bool // before a command about a reserved job, the client connects again and reserves the job by its ID
	OwnLimit   bool // the client measures the timeout of reserve itself, and closes the connection when it has expired

	KeepsUsed    bool // fault: a new connection is taken to use the tube that the previous connection used
	LateIgnore   bool // fault: the tube default is ignored only before the second reserve of a connection
	EOFEndsTask  bool // fault: the end of a connection is taken for success
	KeepsWatched bool // fault: a new connection is taken to watch the tubes that the previous connection watched
}

// Drive performs tasks with the program of [Document].
func Drive(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
	return Document().Drive(ctx, addr, tasks, answers)
}

// Document returns a client or worker that behaves as the specification describes. All options have
// their zero values.
func Document() *peer.Program {
	return &peer.Program{
		Protocol: protocol.Protocol,
		Own:      &Options{},
		Steps: map[string]peer.Sequence{
			"Use":    {{Do: "use {QUEUE}"}},    // before put and kick, if the connection uses another tube
			"Watch":  {{Do: "watch {QUEUE}"}},  // before reserve, for each tube of the task that the connection does not watch
			"Ignore": {{Do: "ignore {QUEUE}"}}, // before reserve, for each watched tube that the task does not name
			"Put": {
				{Do: "round-delay", Local: roundUp("DELAY")},
				{Do: "put {PRI} {DELAY} {TTR} {PAYLOAD}"},
			},
			"Reserve": {
				{Do: "round-timeout", If: peer.Has("TIMEOUT"), Local: roundUp("TIMEOUT")},
				{Do: "reserve", If: peer.Not(peer.Has("TIMEOUT"))},
				{Do: "reserve-with-timeout {TIMEOUT}", If: peer.Has("TIMEOUT")},
			},
			"Reserved":  nil,                            // after a job was reserved
			"PeekReady": {{Do: "peek-ready"}},           // if ByID is true: to find a job that is ready
			"Fetch":     {{Do: "reserve-job {JOB_ID}"}}, // to reserve a job by its ID
			"Delete":    {{Do: "delete {JOB_ID}"}},
			"Release":   {{Do: "release {JOB_ID} {PRI} {DELAY}"}},
			"Bury":      {{Do: "bury {JOB_ID} {PRI}"}},
			"Touch":     {{Do: "touch {JOB_ID}"}},
			"Peek":      {{Do: "peek {JOB_ID}"}},
			"Kick":      {{Do: "kick {BOUND}"}},
			"Pause":     {{Do: "pause-tube {QUEUE} {DELAY}"}},
			"Stats":     {{Do: "stats-job {JOB_ID}"}},
			"Quit":      {{Do: "quit"}},
		},
		Defaults: peer.Task{"PRI": "0", "DELAY": "0", "TTR": "60"},
		Tasks: map[string]peer.Verb{
			"put":        task("QUEUE PAYLOAD [pri=PRI] [delay=DELAY] [ttr=TTR] [nil]", inTube(request("Put")), "JOB_ID"),
			"reserve":    task("QUEUES [timeout=TIMEOUT:number]", reserve, "JOB_ID", "PAYLOAD"),
			"put-ms":     task("QUEUE PAYLOAD DELAY_MS:number", inTube(request("Put")), "JOB_ID"),
			"reserve-ms": task("QUEUES TIMEOUT_MS:number", reserve, "JOB_ID", "PAYLOAD"),
			"delete":     task("JOB_ID", give("Delete")),
			"release":    task("JOB_ID [pri=PRI] [delay=DELAY]", owned(give("Release"))),
			"bury":       task("JOB_ID", owned(give("Bury"))),
			"touch":      task("JOB_ID", owned(request("Touch"))),
			"peek":       task("JOB_ID", request("Peek"), "PAYLOAD"),
			"kick":       task("QUEUE BOUND", inTube(kick)),
			"pause":      task("QUEUE DELAY", request("Pause")),
			"stats":      task("JOB_ID", stats),
			"work":       task("QUEUES HOW:delete|release|bury|touch JOBS:number", work),
		},
		Refusal: func(m *codec.Message) peer.Failure {
			code := map[string]string{"TIMED_OUT": "timed-out", "NOT_FOUND": "not-found", "DEADLINE_SOON": "deadline-soon",
				"JOB_TOO_BIG": "too-big"}[m.Type.Name]
			if code == "" {
				return peer.Failure{Code: m.Type.Name, Words: []string{"server", m.Type.Word}}
			}
			return peer.Failure{Code: m.Type.Name, Words: []string{code, "the server replied " + m.Type.Word}}
		},
	}
}
