package play_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/play"
)

// parse parses a script with one conversation.
func parse(t *testing.T, src string) *transcript.Script {
	t.Helper()
	scripts, err := transcript.Parse(gearman.Protocol, "test.wire", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if len(scripts) != 1 {
		t.Fatalf("%d scripts", len(scripts))
	}
	return scripts[0]
}

// runBoth runs one script as the peers and another one as the server, in memory and virtual time, and returns both results.
func runBoth(t *testing.T, peersSay, serverSays string, o play.Options) (asPeers, asServer *play.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ln, dial := listen(t)
		peersScript, serverScript := parse(t, peersSay), parse(t, serverSays)
		var wg sync.WaitGroup
		wg.Go(func() { asServer = play.Server(t.Context(), serverScript, ln, o) })
		asPeers = play.Peers(t.Context(), peersScript, dial, o)
		ln.Close()
		wg.Wait()
	})
	return asPeers, asServer
}

// listen returns a listener in memory, and a function that connects to it.
func listen(t *testing.T) (net.Listener, play.Dialer) {
	t.Helper()
	ln, err := transport.Listen(transport.Memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln, func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
		return new(transport.Dialer).Dial(ctx, transport.Name(ln))
	}
}

const submit = `
Client -> Job Server: SUBMIT_JOB reverse "" test
Job Server -> Client: JOB_CREATED $h
Job Server -> Client: WORK_COMPLETE $h tset within 10s
`

// TestBothSidesOfAScript tests that a script can be played as the peers and as the server, and that both succeed when
// they are connected to each other.
func TestBothSidesOfAScript(t *testing.T) {
	server := strings.ReplaceAll(submit, " within 10s", "")
	server = strings.ReplaceAll(server, "$h", "H:lap:1")
	p, s := runBoth(t, submit, server, play.Options{})
	for _, r := range []*play.Result{p, s} {
		if r.Failure != nil {
			t.Errorf("%v", r.Failure)
		}
		if len(r.Events) != 3 {
			t.Errorf("%d events, want 3", len(r.Events))
		}
	}
}

// TestLiteralHandlesAreBoundAndRewritten tests that a recorded handle stands for the handle that the server really
// assigns, unless the option Exact is set.
func TestLiteralHandlesAreBoundAndRewritten(t *testing.T) {
	recorded := `
Client -> Job Server: SUBMIT_JOB reverse "" test
Job Server -> Client: JOB_CREATED H:lap:1
Client -> Job Server: GET_STATUS H:lap:1
Job Server -> Client: STATUS_RES H:lap:1 1 0 0 0
`
	live := strings.ReplaceAll(recorded, "H:lap:1", "H:somewhere-else:4711")
	p, s := runBoth(t, recorded, live, play.Options{})
	if p.Failure != nil || s.Failure != nil {
		t.Errorf("peers: %v; server: %v", p.Failure, s.Failure)
	}
	p, _ = runBoth(t, recorded, live, play.Options{Exact: true})
	if p.Failure == nil || p.Failure.Index != 1 || p.Failure.Reason != play.Mismatched {
		t.Errorf("exactly: %v, want a mismatch at the second step", p.Failure)
	}
}

// TestSegmentation checks how many writes reach the other side in each segmentation, and that they have the same total
// size.
func TestSegmentation(t *testing.T) {
	const script = `
Client -> Job Server: ECHO_REQ one
Client -> Job Server: ECHO_REQ two
Job Server -> Client: ECHO_RES one
Job Server -> Client: ECHO_RES two
Client -> Job Server: ECHO_REQ three
`
	packets := []int{15, 15, 17}
	tests := []struct {
		name   string
		how    play.Segmentation
		says   string // the script
		writes int
	}{
		{"plain", play.Plain, "", 3},
		{"bytewise", play.Bytewise, "", 15 + 15 + 17},
		{"coalesced", play.Coalesced, "", 2},
		{"as the script says", play.Plain, "@segments coalesced\n", 2},
		{"not as the script says", play.Bytewise, "@segments coalesced\n", 15 + 15 + 17},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				got := make(chan []int)
				go func() {
					var sizes []int
					total, answered := 0, false
					buf := make([]byte, 4096)
					for {
						n, err := far.Read(buf)
						if err != nil {
							break
						}
						sizes, total = append(sizes, n), total+n
						if total >= packets[0]+packets[1] && !answered {
							answered = true
							io.WriteString(far, "\x00RES\x00\x00\x00\x11\x00\x00\x00\x03one\x00RES\x00\x00\x00\x11\x00\x00\x00\x03two")
						}
					}
					got <- append(sizes, total)
				}()
				dial := func(context.Context, transcript.Actor) (net.Conn, error) { return near, nil }
				if r := play.Peers(t.Context(), parse(t, tt.says+script), dial, play.Options{Segments: tt.how}); r.Failure != nil {
					t.Fatal(r.Failure)
				}
				sizes := <-got
				if writes, total := len(sizes)-1, sizes[len(sizes)-1]; writes != tt.writes || total != 15+15+17 {
					t.Errorf("%d writes of %d bytes, want %d writes of 47", writes, total, tt.writes)
				}
			})
		})
	}
}

// TestUniqueNamesDifferBetweenRuns tests that a name such as $word that is sent first gets another value in each run.
func TestUniqueNamesDifferBetweenRuns(t *testing.T) {
	script := "Client -> Job Server: ECHO_REQ $word\nJob Server -> Client: ECHO_RES $word\n"
	seen := map[string]bool{}
	for range 3 {
		p, s := runBoth(t, script, "Client -> Job Server: ECHO_REQ $x\nJob Server -> Client: ECHO_RES $x\n", play.Options{})
		if p.Failure != nil || s.Failure != nil {
			t.Fatalf("peers: %v; server: %v", p.Failure, s.Failure)
		}
		seen[string(p.Events[0].Frame.Arg(0))] = true
	}
	if len(seen) != 3 {
		t.Errorf("the words were %v, want three different ones", seen)
	}
}

// TestFailures tests that playing against a server that differs from the script fails with the reason, the violated
// rule and a text that the report also contains.
func TestFailures(t *testing.T) {
	tests := []struct {
		name, peers, server string
		reason              play.Reason
		rule                codec.RuleID
		text                string
	}{
		{"another type", submit,
			"Client -> Job Server: SUBMIT_JOB reverse \"\" test\nJob Server -> Client: ERROR queue_full full",
			play.Mismatched, "", "expected JOB_CREATED, got ERROR"},
		{"another argument", "Client -> Job Server: ECHO_REQ one\nJob Server -> Client: ECHO_RES one",
			"Client -> Job Server: ECHO_REQ one\nJob Server -> Client: ECHO_RES two",
			play.Mismatched, "", "expected one, got two"},
		{"a handle that changes", submit,
			"Client -> Job Server: SUBMIT_JOB reverse \"\" test\nJob Server -> Client: JOB_CREATED H:1\nJob Server -> Client: WORK_COMPLETE H:2 tset",
			play.Mismatched, "", "H:2"},
		{"no answer", submit, "Client -> Job Server: SUBMIT_JOB reverse \"\" test\nClient -> Job Server: closes within 20s",
			play.TimedOut, "", "expected JOB_CREATED, got nothing within 5s"},
		{"half an answer", submit, "Client -> Job Server: SUBMIT_JOB reverse \"\" test\nJob Server -> Client: raw 00 \"RES\"\nClient -> Job Server: closes within 20s",
			play.TimedOut, "", "expected JOB_CREATED, got an incomplete message of 4 bytes after 5s"},
		{"a broken packet", submit, "Client -> Job Server: SUBMIT_JOB reverse \"\" test\nJob Server -> Client: unchecked JOB_CREATED \"\"",
			play.Broken, gearman.RuleHandleEmpty, "expected a value that is not empty, got an empty value"},
		{"no packet at all", submit, "Client -> Job Server: SUBMIT_JOB reverse \"\" test\nJob Server -> Client: raw 00 \"HTTP\"",
			play.Broken, gearman.RuleMagic, "magic"},
		{"a close", submit, "Client -> Job Server: SUBMIT_JOB reverse \"\" test\nJob Server -> Client: closes",
			play.Ended, "", "got the end of the connection"},
		{"noise where silence is due", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\nJob Server -> Client: nothing for 1s",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\nJob Server -> Client: ECHO_RES y",
			play.Mismatched, "", "expected silence for 1s, got ECHO_RES"},
		{"too early", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x after 1s",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x",
			play.TooEarly, "", "expected the message at least 1s after the previous message, got it after 0s"},
		{"too early after a request", "Client -> Job Server: ECHO_REQ x\nClient -> Job Server: ECHO_REQ y\nJob Server -> Client: ECHO_RES x\nJob Server -> Client: ECHO_RES y after 3s of ECHO_REQ",
			"Client -> Job Server: ECHO_REQ x\nClient -> Job Server: ECHO_REQ y\nJob Server -> Client: ECHO_RES x after 1s\nJob Server -> Client: ECHO_RES y after 1s",
			play.TooEarly, "", "expected the message at least 3s after ECHO_REQ, got it after 2s"},
		{"another reply too late to prove a fault", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\nJob Server -> Client: JOB_CREATED x until 1s of ECHO_REQ",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\nJob Server -> Client: ECHO_RES x after 2s",
			play.TooLate, "", "the message arrived 2s after ECHO_REQ, but a wrong message proves a fault only within 1s: byte 4, Packet type: expected JOB_CREATED, got ECHO_RES"},
		{"another reply in time", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\nJob Server -> Client: JOB_CREATED x until 3s of ECHO_REQ",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\nJob Server -> Client: ECHO_RES x after 2s",
			play.Mismatched, "", "expected JOB_CREATED, got ECHO_RES"},
		{"after a request that was not sent", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x after 1s of PRE_SLEEP",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x",
			play.CannotSend, "", "measures a time from PRE_SLEEP and does not send it before"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := runBoth(t, tt.peers, tt.server, play.Options{})
			f := p.Failure
			if f == nil {
				t.Fatal("expected a failure, got none")
			}
			if f.Reason != tt.reason || f.Rule() != tt.rule || !strings.Contains(f.Text, tt.text) {
				t.Errorf("reason %d, rule %q, %q; want %d, %q, and %q in it", f.Reason, f.Rule(), f.Text, tt.reason, tt.rule, tt.text)
			}
			var report strings.Builder
			if err := play.WriteReport(&report, parse(t, tt.peers), p, play.ReportOptions{}); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.ReplaceAll(report.String(), "\n", " "), tt.text) {
				t.Errorf("the report does not say %q:\n%s", tt.text, report.String())
			}
		})
	}
}

// TestExpectationsThatAllowMore tests that an expected reply may have alternatives, wildcards, non-strict alternatives
// and messages to ignore, and that the result says whether the reply was strict.
func TestExpectationsThatAllowMore(t *testing.T) {
	tests := []struct {
		name, peers, server string
		grade               transcript.Grade
	}{
		{"second choice", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES y\n  or ECHO_RES x",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x", transcript.Strict},
		{"a broken message that is not judged", "Client -> Job Server: GET_STATUS h\nJob Server -> Client: STATUS_RES h 1 0 * *\n  or non-strict unchecked STATUS_RES h 1 0 \"\" \"\"",
			"Client -> Job Server: GET_STATUS h\nJob Server -> Client: unchecked STATUS_RES h 1 0 \"\" \"\"", transcript.NonStrict},
		{"non-strict choice", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n  or non-strict closes",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: closes", transcript.NonStrict},
		{"non-strict silence", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n  or non-strict nothing for 1s",
			"Client -> Job Server: ECHO_REQ x\nClient -> Job Server: closes", transcript.NonStrict},
		{"past", "Worker -> Job Server: ECHO_REQ x\nJob Server -> Worker: ECHO_RES x past NOOP",
			"Worker -> Job Server: ECHO_REQ x\nJob Server -> Worker: NOOP\nJob Server -> Worker: NOOP\nJob Server -> Worker: ECHO_RES x", transcript.Strict},
		{"past what is not the non-strict choice", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x past ERROR\n  or non-strict ERROR none *",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ERROR other text\nJob Server -> Client: ERROR none text", transcript.NonStrict},
		{"wildcard", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES *",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES anything", transcript.Strict},
		{"sent later", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\nClient -> Job Server: ECHO_REQ y after 2s",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\nClient -> Job Server: ECHO_REQ y after 1900ms", transcript.Strict},
		{"connects anew", "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: closes\nClient -> Job Server: ECHO_REQ y\nJob Server -> Client: ECHO_RES y",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: closes\nClient 2 -> Job Server: ECHO_REQ y\nJob Server -> Client 2: ECHO_RES y", transcript.Strict},
		{"raw", "Client -> Job Server: raw \"status\\n\"\nJob Server -> Client: raw \".\\n\"",
			"Admin -> Job Server: status\nJob Server -> Admin: status-reply", transcript.Strict},
		{"raw in pieces", "Client -> Job Server: raw 00 \"RE\"\nClient -> Job Server: raw \"Q\" 00 00 00 10 00 00 00 01 \"x\"\nJob Server -> Client: ECHO_RES x",
			"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x", transcript.Strict},
		{"rows around a row", "Admin -> Job Server: status\nJob Server -> Admin: status-reply ... f 1 0 2 ...",
			"Admin -> Job Server: status\nJob Server -> Admin: status-reply a 0 0 0 f 1 0 2 z 1 1 1", transcript.Strict},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, s := runBoth(t, tt.peers, tt.server, play.Options{})
			if p.Failure != nil || s.Failure != nil || p.Grade != tt.grade {
				t.Errorf("peers: %v, grade %d, want %d; server: %v", p.Failure, p.Grade, tt.grade, s.Failure)
			}
		})
	}
}

// TestServerDistinguishesLikeActors connects two workers in an order other than that of the script. The server distinguishes
// them by the arguments of their messages.
func TestServerDistinguishesLikeActors(t *testing.T) {
	p, s := runBoth(t,
		"Worker -> Job Server: CAN_DO other\nWorker 2 -> Job Server: CAN_DO reverse\nWorker 2 -> Job Server: GRAB_JOB\nJob Server -> Worker 2: NO_JOB",
		"Worker -> Job Server: CAN_DO reverse\nWorker 2 -> Job Server: CAN_DO other\nWorker -> Job Server: GRAB_JOB\nJob Server -> Worker: NO_JOB", play.Options{})
	if p.Failure != nil || s.Failure != nil {
		t.Errorf("peers: %v; server: %v", p.Failure, s.Failure)
	}
}

// TestServerDistinguishesActors tests that the server side of a script accepts a worker that connects before the client
// that is first in the script.
func TestServerDistinguishesActors(t *testing.T) {
	p, s := runBoth(t,
		"Worker -> Job Server: CAN_DO f\nClient -> Job Server: SUBMIT_JOB_BG f \"\" x\nJob Server -> Client: JOB_CREATED $h\nJob Server -> Worker: nothing for 1s",
		"Client -> Job Server: SUBMIT_JOB_BG f \"\" x\nJob Server -> Client: JOB_CREATED H:1\nWorker -> Job Server: CAN_DO f", play.Options{})
	if p.Failure != nil && p.Failure.Reason != play.Ended || s.Failure != nil {
		t.Errorf("peers: %v; server: %v", p.Failure, s.Failure)
	}
}

// TestOnlySelectedActorsArePlayed tests that only the steps of the actors in the option Actors are played.
func TestOnlySelectedActorsArePlayed(t *testing.T) {
	script := "Worker -> Job Server: GRAB_JOB\nJob Server -> Worker: NO_JOB\nClient -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n"
	p, s := runBoth(t, script, "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x", play.Options{Actors: []string{"Client"}})
	if p.Failure != nil || s.Failure != nil || len(p.Events) != 2 {
		t.Errorf("peers: %v with %d events; server: %v", p.Failure, len(p.Events), s.Failure)
	}
}

// TestClientEndsConnections tests that the steps closes, half-closes and resets end the connection in the way that the
// server then observes.
func TestClientEndsConnections(t *testing.T) {
	for _, ending := range []string{"closes", "half-closes", "resets"} {
		synctest.Test(t, func(t *testing.T) {
			ln, dial := listen(t)
			saw := make(chan error, 1)
			go func() {
				c, err := ln.Accept()
				if err != nil {
					saw <- err
					return
				}
				defer c.Close()
				_, err = io.Copy(io.Discard, c)
				c.Write([]byte("\x00RES\x00\x00\x00\x11\x00\x00\x00\x00"))
				saw <- err
			}()
			script := "Client -> Job Server: ECHO_REQ \"\"\nClient -> Job Server: " + ending + "\n"
			if ending == "half-closes" {
				script += "Job Server -> Client: ECHO_RES \"\"\nJob Server -> Client: closes\n"
			}
			if r := play.Peers(t.Context(), parse(t, script), dial, play.Options{}); r.Failure != nil {
				t.Error(r.Failure)
			}
			if err := <-saw; (err != nil) != (ending == "resets") {
				t.Errorf("%s: the server saw %v", ending, err)
			}
		})
	}
}

// flood plays a script with a worker that sends ECHO_REQ, against a server that then sends piece without end, and calls
// pause after each.
func flood(t *testing.T, script string, piece []byte, pause func()) *play.Result {
	t.Helper()
	near, far := net.Pipe()
	var server sync.WaitGroup
	defer server.Wait()
	defer far.Close()
	server.Go(func() {
		far.Read(make([]byte, 100))
		for {
			if _, err := far.Write(piece); err != nil {
				return
			}
			pause()
		}
	})
	dial := func(context.Context, transcript.Actor) (net.Conn, error) { return near, nil }
	return play.Peers(t.Context(), parse(t, script), dial, play.Options{})
}

// TestFloodEnds: a step fails at its deadline although the server keeps sending messages that the step ignores.
func TestFloodEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := flood(t, "Worker -> Job Server: ECHO_REQ x\nJob Server -> Worker: ECHO_RES x past NOOP",
			[]byte("\x00RES\x00\x00\x00\x06\x00\x00\x00\x00"), func() { time.Sleep(time.Millisecond) })
		if r.Failure == nil || r.Failure.Reason != play.TimedOut || len(r.Events) > 300 {
			t.Errorf("%v, with %d events; want an end at the deadline", r.Failure, len(r.Events))
		}
	})
}

// TestEndlessReplyIsCut: an event does not keep all bytes that follow an invalid message.
func TestEndlessReplyIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := flood(t, "Worker -> Job Server: ECHO_REQ x\nJob Server -> Worker: ECHO_RES x", bytes.Repeat([]byte("A"), 1<<20), func() {})
		if !strings.Contains(fmt.Sprint(r.Failure), "[gearman.admin.line-length]") {
			t.Errorf("expected an invalid reply, got %v", r.Failure)
		}
		for _, ev := range r.Events {
			if len(ev.Frame.Raw) > 256<<10 {
				t.Errorf("an event has %d bytes", len(ev.Frame.Raw))
			}
		}
	})
}

// TestSlowReader: sending a long message waits for a side that reads slowly, but not for one that stops reading.
func TestSlowReader(t *testing.T) {
	const message = 4 << 20
	for _, test := range []struct {
		takes int
		fails bool
	}{{12 + message, false}, {message / 2, true}} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			var taker sync.WaitGroup
			defer taker.Wait()
			defer far.Close()
			taker.Go(func() {
				piece := make([]byte, 64<<10)
				for taken := 0; taken < test.takes; taken += len(piece) {
					if _, err := io.ReadFull(far, piece[:min(len(piece), test.takes-taken)]); err != nil {
						return
					}
					time.Sleep(play.DefaultTimeout / 5)
				}
			})
			script := parse(t, fmt.Sprintf("Client -> Job Server: ECHO_REQ \"x\"*%d\n", message))
			r := play.Peers(t.Context(), script, func(context.Context, transcript.Actor) (net.Conn, error) { return near, nil }, play.Options{})
			failed := r.Failure != nil && r.Failure.Reason == play.CannotSend && r.Failure.Waited == play.DefaultTimeout
			if failed != test.fails {
				t.Errorf("of %d bytes the server takes %d slowly: %v", message, test.takes, r.Failure)
			}
			if r.Took < 5*play.DefaultTimeout {
				t.Errorf("it was over after %v", r.Took)
			}
		})
	}
}

// TestProxyForwardsTheLastMessage tests that the proxy forwards all bytes of the last message to a program that is
// still reading when the script ends.
func TestProxyForwardsTheLastMessage(t *testing.T) {
	const reply = "\x00RES\x00\x00\x00\x11\x00\x00\x00\x01x"
	for _, how := range []play.Segmentation{play.Plain, play.Bytewise} {
		synctest.Test(t, func(t *testing.T) {
			ln, connect := listen(t)
			var wg sync.WaitGroup
			defer wg.Wait()
			var received []byte
			wg.Go(func() {
				c, err := connect(t.Context(), transcript.Actor{})
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				io.WriteString(c, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x01x")
				b := make([]byte, 1)
				for {
					time.Sleep(10 * time.Millisecond)
					if _, err := c.Read(b); err != nil {
						return
					}
					received = append(received, b...)
				}
			})
			dial := func(context.Context, transcript.Actor) (net.Conn, error) {
				near, far := net.Pipe()
				wg.Go(func() {
					defer far.Close()
					io.ReadFull(far, make([]byte, len(reply)))
					io.WriteString(far, reply)
					io.Copy(io.Discard, far)
				})
				return near, nil
			}
			r := play.Proxy(t.Context(), parse(t, "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x"), dial, "Client", ln, play.Options{Segments: how})
			if r.Failure != nil {
				t.Error(r.Failure)
			}
			wg.Wait()
			if string(received) != reply {
				t.Errorf("%v: the program has heard %q, want %q", how, received, reply)
			}
		})
	}
}

// TestRefusedConnectionCountsAsClosed tests that a connection that the server refuses fulfills an expected close, and
// makes any other step fail as unreachable.
func TestRefusedConnectionCountsAsClosed(t *testing.T) {
	dial := func(context.Context, transcript.Actor) (net.Conn, error) { return nil, io.ErrClosedPipe }
	r := play.Peers(t.Context(), parse(t, "Client -> Job Server: opens\nJob Server -> Client: closes"), dial, play.Options{})
	if r.Failure != nil {
		t.Error(r.Failure)
	}
	r = play.Peers(t.Context(), parse(t, "Client -> Job Server: opens\nJob Server -> Client: nothing for 1s"), dial, play.Options{})
	if r.Failure == nil || r.Failure.Reason != play.Unreachable {
		t.Errorf("%v, want unreachable", r.Failure)
	}
}

// TestNoConnection tests that a script fails as unreachable if no connection can be opened.
func TestNoConnection(t *testing.T) {
	dial := func(context.Context, transcript.Actor) (net.Conn, error) { return nil, io.ErrClosedPipe }
	r := play.Peers(t.Context(), parse(t, submit), dial, play.Options{})
	if r.Failure == nil || r.Failure.Reason != play.Unreachable {
		t.Errorf("%v, want unreachable", r.Failure)
	}
}

// TestExampleOnGearmand runs the example of the Gearman specification, unchanged, with a real gearmand.
func TestExampleOnGearmand(t *testing.T) {
	src, err := corpus.FS.ReadFile("gearman/example.wire")
	if err != nil {
		t.Fatal(err)
	}
	srv := peers.Start(t, "gearmand")
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) { return target.Dial(ctx, srv) }
	r := play.Peers(t.Context(), parse(t, string(src)), dial, play.Options{})
	if r.Failure != nil {
		var report strings.Builder
		play.WriteReport(&report, parse(t, string(src)), r, play.ReportOptions{Bytes: true})
		t.Errorf("%v\n%s", r.Failure, report.String())
	}
}

// TestEncodeGivesTheBytesThatBothSidesSend tests that Encode returns the bytes of each step of a script, and an error
// that names the line if a step has a wildcard.
func TestEncodeGivesTheBytesThatBothSidesSend(t *testing.T) {
	src, err := corpus.FS.ReadFile("gearman/example.wire")
	if err != nil {
		t.Fatal(err)
	}
	s := parse(t, string(src))
	events, err := play.Encode(s, time.Unix(0, 0), false)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != len(s.Steps) {
		t.Fatalf("%d events of %d steps", len(events), len(s.Steps))
	}
	for i, ev := range events {
		if want := s.Steps[i].Choices[0].Bytes; string(ev.Frame.Raw) != string(want) {
			t.Errorf("step %d: %q, want %q", i, ev.Frame.Raw, want)
		}
	}
	if _, err := play.Encode(parse(t, "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES *"), time.Unix(0, 0), false); err == nil || !strings.Contains(err.Error(), "test.wire:2") {
		t.Errorf("a wildcard: %v, want an error that names line 2", err)
	}
}

// TestEncodeFills: Encode replaces the wildcards of a transcript by values that make valid messages.
func TestEncodeFills(t *testing.T) {
	for _, p := range []*codec.Protocol{gearman.Protocol, danga.Protocol} {
		for _, msgType := range p.Types {
			for _, role := range p.Roles {
				if msgType.Res&p.RoleNamed(role) == 0 || role == "Admin" { // their replies depend on a request
					continue
				}
				least, _, _ := msgType.Arity()
				for _, words := range []string{strings.Repeat(" *", least), " ..."} {
					script := fmt.Sprintf("%s -> %s: %s%s", p.ServerName, role, msgType.Name, words)
					all, err := transcript.Parse(p, "test.wire", []byte(script))
					if err != nil {
						t.Errorf("%s: %v", script, err)
						continue
					}
					events, err := play.Encode(all[0], time.Unix(0, 0), true)
					if err != nil {
						t.Errorf("%s: %v", script, err)
						continue
					}
					var f codec.Frame
					raw := events[0].Frame.Raw
					if n, err := p.NewSession(codec.Options{}).Decode(codec.Server, raw, &f); err != nil || n != len(raw) {
						t.Errorf("%s: %q: %v", script, raw, err)
					}
				}
			}
		}
	}
}

// TestListenerStaysOpen: a run and its goroutines end without a connection, and the listener can be used again.
func TestListenerStaysOpen(t *testing.T) {
	s := parse(t, "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n")
	for name, perform := range map[string]func(context.Context, net.Listener, play.Dialer) *play.Result{
		"server": func(ctx context.Context, ln net.Listener, _ play.Dialer) *play.Result {
			return play.Server(ctx, s, ln, play.Options{})
		},
		"program": func(ctx context.Context, ln net.Listener, dial play.Dialer) *play.Result {
			return play.Proxy(ctx, s, dial, "Client", ln, play.Options{})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ln, dial := listen(t)
			if r := perform(t.Context(), ln, dial); r.Failure == nil {
				t.Errorf("%s: it passed without a connection", name)
			}
			if c, err := dial(t.Context(), transcript.Actor{}); err != nil {
				t.Errorf("%s: the listener is closed: %v", name, err)
			} else {
				c.Close()
			}
			if c, err := ln.Accept(); err != nil {
				t.Errorf("%s: the listener does not accept: %v", name, err)
			} else {
				c.Close()
			}
		})
	}
}

// TestRawBytesInParts: a step of raw bytes may comprise several messages, which need not arrive together. A message that
// another choice of the step expects does not wait for the rest.
func TestRawBytesInParts(t *testing.T) {
	const echo = `00 "RES" 00 00 00 11 00 00 00 01 "x"`
	const request = "Client -> Job Server: ECHO_REQ x\n"
	parts := request + "Job Server -> Client: raw " + echo + "\nJob Server -> Client: raw " + echo + " after 20ms\n"
	for expected, fails := range map[string]bool{
		"raw " + echo + " " + echo:         false,
		"raw " + echo + " 01":              true,
		"raw " + echo + " " + echo + " 00": true,
		"ECHO_RES x\n  or raw " + echo + " " + echo + " 00\nJob Server -> Client: ECHO_RES x": false,
	} {
		peers, _ := runBoth(t, request+"Job Server -> Client: "+expected+"\n", parts, play.Options{})
		if (peers.Failure != nil) != fails {
			t.Errorf("%s: failure %v, want one: %t", expected, peers.Failure, fails)
		}
	}
}

// TestRawBytesArriveWhileDecoding: bytes that violate a rule are compared with the transcript, also if they arrive between
// two checks of the received bytes.
func TestRawBytesArriveWhileDecoding(t *testing.T) {
	const exchange = "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: raw 00 \"RES\" 00 00 00 1b 00 00 00 0c \"exceptions\" 00 \"x\"\n"
	src := strings.Repeat(exchange, 500)
	for range 5 {
		peers, server := runBoth(t, src, src, play.Options{})
		if peers.Failure != nil || server.Failure != nil {
			t.Fatalf("peers: %v\nserver: %v", peers.Failure, server.Failure)
		}
	}
}
