package refserver_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/internal/version"
	"jobwire/refserver"
	tubes "jobwire/refserver/beanstalk"
	machine "jobwire/refserver/gearman"
	"jobwire/refserver/inject"
	"jobwire/refserver/internal/peertest"
)

// TestParseFaults checks valid fault scripts, and that the error of an invalid one mentions the mistake.
func TestParseFaults(t *testing.T) {
	for _, text := range []string{
		"drop NOOP", "drop from-peer WORK_DATA nth=2", "delay WORK_COMPLETE 500ms", "split * 1", "split * 3 2ms nth=4",
		"alter JOB_CREATED job-handle=H:x:1", "alter JOB_CREATED job_handle={job_handle[:4]}x", "close JOB_ASSIGN",
		"retype SUBMIT_JOB_HIGH SUBMIT_JOB", "answer GRAB_JOB NO_JOB nth=1", `answer SUBMIT_JOB* ERROR full "" when function == "f"`,
		"follow JOB_ASSIGN NOOP", `drop ERROR when error_text contains "a b" and not (error_code == "x") nth=2`,
		"alter status-reply running=0 when len(function) > 1", "crash (closed) when any(jobs, is_queued(#) and #.creator == peer)",
		"mute ECHO_REQ", `note SUBMIT_JOB,SUBMIT_JOB_BG last={function}`, "give CANT_DO CANT_DO {function} as {peers}",
		`follow SUBMIT_JOB NOOP to {it} for {filter(peers, does(#, function))}`, "pass GRAB_JOB",
		`ask ECHO_REQ CAN_DO {data}`, "remove status-reply [f]", "alter status-reply [f]={number(it) + 1}",
		"ask SUBMIT_JOB CANT_DO {function} as {peers}", `note CAN_DO peer.{function}={peer.notes["="]}`, `misread ^\x00REQ "\x00RES"`,
		`misread-segment \r$ ""`, `crash (closed) when len(peer.rest) == 4`, "close shutdown to {peers}", "resume GRAB_JOB",
		"send (opened) NOOP after 1s", "send GRAB_JOB NOOP when job.assigned > 1 after 50ms if is_queued(job) nth=2",
	} {
		if _, err := injector.ParseFaults(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, hint := range map[string]string{
		"explode NOOP":                   "duplicate",
		"drop":                           "drop TYPES",
		"drop NOPE":                      "JOB_CREATED",
		"drop from-peer NOOP":            "the peer never sends NOOP",
		"drop NOOP twice":                `"twice"`,
		"drop NOOP nth=0":                "at least 1",
		"drop (gone)":                    "(closed)",
		"delay NOOP":                     "500ms",
		"delay NOOP soon":                "500ms",
		"split from-peer * 1":            "server",
		"split * 0":                      "at least 1",
		"split * 1 1h":                   "1s",
		"alter JOB_CREATED":              "FIELD=VALUE",
		"alter JOB_CREATED handle=H:x:1": "job_handle",
		"retype JOB_CREATED":             "no message type",
		"retype JOB_CREATED CAN_DO":      "the server never sends CAN_DO",
		"answer JOB_CREATED NO_JOB":      "only on messages that the peer sends",
		"answer GRAB_JOB CAN_DO":         "the server never sends CAN_DO",
		"give GRAB_JOB NO_JOB":           "the peer never sends NO_JOB",
		"ask GRAB_JOB NO_JOB":            "the peer never sends NO_JOB",
		"remove status-reply f":          "[KEY]",
		"retype NOOP NO_JOB soon":        `"soon"`,
		"misread (":                      "a pattern and a text",
		"misread ( x":                    "missing closing",
		"note CAN_DO {function}":         "NAME=VALUE",
		"misread-segment x":              "after misread-segment",
		"drop NOOP after 1s":             "send, give",
		"drop NOOP to {peers}":           "follow, send",
		"close GRAB_JOB after soon":      "500ms",
		"close GRAB_JOB after 1s when x": `"if"`,
		"drop NOOP when":                 "expression",
		"drop ERROR when error_text":     "bool",
		"drop ERROR when text == \"x\"":  "error_text",
		"alter NO_JOB x={":               "brace",
		"drop NOOP,":                     `got "NOOP,"`,
		"send NO_JOB NOOP }{":            "a closing brace",
		"note GRAB_JOB {a}{":             "brace",
		"note GRAB_JOB {a=b}c":           "NAME=VALUE",
	} {
		if _, err := injector.ParseFaults(text); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: error %v, want a mention of %q", text, err, hint)
		}
	}
}

var injector = &inject.Protocol{Protocol: gearman.Protocol, New: func() refserver.Machine { return machine.New(machine.Options{}) }}

// TestDrop tests that the fault drop removes messages of the server or of a peer, and that the replies to later
// commands are still decoded correctly.
func TestDrop(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		w, c := dial(), dial()
		w.Send("CAN_DO", "f")
		w.Send("PRE_SLEEP")
		w.Send("ECHO_REQ", "1")
		w.Want("ECHO_RES", "1")
		c.Send("SUBMIT_JOB_BG", "f", "", "")
		c.Want("JOB_CREATED", "*")
		w.Send("ECHO_REQ", "2")
		w.Send("ECHO_REQ", "3")
		w.Want("ECHO_RES", "3")
	}, "drop NOOP", "drop from-peer ECHO_REQ nth=2", "drop version")
	// A dropped command must not change how the replies to later commands are decoded.
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		a := dial()
		if _, err := a.Conn.Write([]byte("version\n")); err != nil {
			t.Fatal(err)
		}
		a.Send("maxqueue", "f", "1")
		a.Want("OK")
	}, "drop version")
}

// TestDelay tests that the fault delay sends or handles a message later, and that other messages overtake it.
func TestDelay(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		start := time.Now()
		c.Send("CAN_DO", "f")
		c.Send("SUBMIT_JOB", "f", "", "x")
		c.Send("ECHO_REQ", "overtakes it")
		c.Want("ECHO_RES", "overtakes it")
		h := c.Want("JOB_CREATED", "*")[0]
		if d := time.Since(start); d != 500*time.Millisecond {
			t.Errorf("delayed by %v", d)
		}
		c.Send("GRAB_JOB")
		c.Want("NO_JOB")
		time.Sleep(2 * time.Second)
		c.Send("GRAB_JOB")
		c.Want("JOB_ASSIGN", h, "f", "x")
		c.Send("SUBMIT_JOB", "f", "", "y")
		c.Leave() // what the server sends later is lost
		time.Sleep(2 * time.Second)
	}, "delay JOB_CREATED 500ms", "delay CAN_DO 2s")
}

// TestLater checks that an action happens after its time, if the condition for it holds then and the connection is open.
func TestLater(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		start := time.Now()
		idle, busy := dial(), dial()
		busy.Send("PRE_SLEEP")
		idle.Want("NOOP")
		if d := time.Since(start); d != time.Second {
			t.Errorf("sent after %v", d)
		}
		busy.Send("ECHO_REQ", "1")
		busy.Want("ECHO_RES", "1") // no NOOP before
		gone := dial()
		gone.Leave()
		time.Sleep(2 * time.Second)
	}, "send (opened) NOOP after 1s if peer.heard == 0")
}

// TestSegmentsAndRest checks that misread-segment changes what arrives together, that peer.rest has the bytes after the last
// message, and that close with receivers closes only their connections.
func TestSegmentsAndRest(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		a, b := dial(), dial()
		b.Send("ECHO_REQ", "1")
		b.Want("ECHO_RES", "1")
		a.Raw([]byte("versi"))
		synctest.Wait()
		a.Raw([]byte("\x00REQ\x00\x00\x00\x10\x00\x00\x00\x01x\x00REQ"))
		synctest.Wait() // the server ignores the segment "versi", and the request that part of another follows
		a.Raw([]byte("\x00\x00\x00\x10\x00\x00\x00\x01y"))
		a.Want("ECHO_RES", "y")
		a.Send("RESET_ABILITIES")
		b.Ended()
		a.Send("ECHO_REQ", "z")
		a.Want("ECHO_RES", "z")
	}, `misread-segment ^versi$ ""`, `misread-segment ^never$ ""`, `drop ECHO_REQ when len(peer.rest) == 4`, `close RESET_ABILITIES to {filter(peers, # != peer)}`)
}

// TestFaultsOfEvents checks that actions about messages do not apply to events: patterns of types do not include events, and an
// event cannot be passed to the server again.
func TestFaultsOfEvents(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		c.Raw([]byte("\x00REQ\x00\x00\x00\x63\x00\x00\x00\x00")) // (illegal): no message type has the number 0x63
		c.Want("ERROR", "*", "*")
		c.CloseWrite() // (half-closed)
		c.Ended()
		other := dial() // (opened), while the server still works
		other.Send("ECHO_REQ", "1")
		other.Want("ECHO_RES", "1")
	}, "delay from-peer * 1ms", "duplicate (illegal)", "pass (opened)", "hangup (half-closed)")
}

// TestDuplicateAndAlter tests that the fault duplicate sends or handles a message twice, and that alter changes a
// field, also to an illegal value.
func TestDuplicateAndAlter(t *testing.T) {
	o := []string{"duplicate JOB_CREATED nth=1", "alter JOB_CREATED job-handle=H:x:1", "alter from-peer ECHO_REQ data=other",
		"duplicate GRAB_JOB", "alter STATUS_RES known=maybe"}
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		c.Send("SUBMIT_JOB_BG", "f", "", "1")
		c.Want("JOB_CREATED", "H:x:1")
		c.Want("JOB_CREATED", "H:x:1")
		c.Send("SUBMIT_JOB_BG", "f", "", "2")
		c.Want("JOB_CREATED", "H:x:1")
		c.Send("ECHO_REQ", "this")
		c.Want("ECHO_RES", "other")
		c.Send("CAN_DO", "f")
		c.Send("GRAB_JOB")
		c.Want("JOB_ASSIGN", "*", "f", "1")
		c.Want("JOB_ASSIGN", "*", "f", "2")
		c.Send("GET_STATUS", "H:test:1")
		if err := c.Ended(); err == nil || !strings.Contains(err.Error(), "maybe") {
			t.Errorf("a reply that breaks its rules is read: %v", err)
		}
	}, o...)
}

// TestCloseFault tests that the fault close ends the connection in place of a message, and that a job which was about
// to be assigned is not lost.
func TestCloseFault(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c, w, x := dial(), dial(), dial()
		c.Send("SUBMIT_JOB", "f", "", "x")
		h := c.Want("JOB_CREATED", "*")[0]
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		w.Ended()
		c.Send("GET_STATUS", h)
		c.Want("STATUS_RES", h, "1", "0", "0", "0")
		x.Send("SUBMIT_JOB_LOW", "f", "", "")
		x.Ended()
	}, "close JOB_ASSIGN", "close from-peer SUBMIT_JOB_LOW")
}

// TestSplit tests that the fault split sends a message in pieces of a given size with a given pause between them. The
// connection is in memory, where one Read returns the data of one Write.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := refserver.Options{Protocol: gearman.Protocol}
		m, err := injector.Wrap(machine.New(machine.Options{}), &o, "split ECHO_RES 5 10ms nth=2")
		if err != nil {
			t.Fatal(err)
		}
		srv := refserver.New(m, o)
		near := peertest.Connect(t, srv)
		echo := []byte("\x00REQ\x00\x00\x00\x10\x00\x00\x00\x04data")
		near.Write(bytes.Repeat(echo, 3))
		start := time.Now()
		var sizes []int
		var all []byte
		for len(all) < 3*len(echo) {
			b := make([]byte, 1000)
			n, err := near.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			sizes, all = append(sizes, n), append(all, b[:n]...)
		}
		if want := []int{16, 5, 5, 5, 1, 16}; !slices.Equal(sizes, want) {
			t.Errorf("pieces of %v bytes, want %v", sizes, want)
		}
		if d := time.Since(start); d != 40*time.Millisecond {
			t.Errorf("they took %v", d)
		}
		answer := []byte("\x00RES\x00\x00\x00\x11\x00\x00\x00\x04data")
		if !bytes.Equal(all, bytes.Repeat(answer, 3)) {
			t.Errorf("got %q", all)
		}
		near.Reset()
		srv.Close()
	})
}

// TestInterceptAndTrace tests that Intercept can replace the bytes of a message, and that Trace gets each message with
// its size and the rule that it violates.
func TestInterceptAndTrace(t *testing.T) {
	var log []string
	raw := []byte("\x00RES\x00\x00\x00\x09\x00\x00\x00\x00")
	o := refserver.Options{
		Intercept: func(c *refserver.Conn, from codec.Side, f *codec.Frame) refserver.Verdict {
			if f.Type != nil && f.Type.Name == "NO_JOB" {
				return refserver.Verdict{Raw: &raw}
			}
			return refserver.Verdict{}
		},
		Trace: func(c *refserver.Conn, from codec.Side, f *codec.Frame, raw []byte, err *codec.Error) {
			s := fmt.Sprintf("%d %s", c.ID(), from)
			if f.Type != nil {
				s += " " + f.Type.Name
			}
			if f.Type == nil || f.Type.Name != "ERROR" {
				s += fmt.Sprintf(" %d", len(raw))
			}
			if err != nil {
				s += " " + string(err.Rule)
			}
			log = append(log, s)
		},
	}
	bubble(t, o, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		c.Send("version")
		c.Want("version-reply", "*")
		c.Raw([]byte("\x00REQ\x00\x00\x00\x4d\x00\x00\x00\x00"))
		c.Want("ERROR", "*", "*")
		c.Send("GRAB_JOB")
		c.Ended()
	})
	want := []string{
		"1 peer version 8",
		fmt.Sprintf("1 server version-reply %d", len("OK "+version.Number+"\n")),
		"1 peer 12 gearman.packet.type-known",
		"1 server ERROR",
		"1 peer GRAB_JOB 12",
		"1 server GRAB_JOB 12 gearman.packet.type-direction",
	}
	if !slices.Equal(log, want) {
		t.Errorf("traced\n%s\nwant\n%s", strings.Join(log, "\n"), strings.Join(want, "\n"))
	}
}

// TestRetype tests that the fault retype changes the type of a message, keeps the fields that both types have, and
// leaves the others empty.
func TestRetype(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c, w := dial(), dial()
		c.Send("SUBMIT_JOB_HIGH", "f", "id", "low")
		low := c.Want("JOB_CREATED", "*")[0]
		c.Send("SUBMIT_JOB", "f", "", "normal")
		normal := c.Want("JOB_CREATED", "*")[0]
		w.Send("CAN_DO", "f")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", normal, "f", "normal")
		w.Send("GRAB_JOB_UNIQ")
		w.Want("JOB_ASSIGN", low, "f", "low") // JOB_ASSIGN has no field for the unique ID
		w.Send("WORK_DATA", low, "some")
		c.Want("WORK_WARNING", low, "some")
		w.Send("WORK_FAIL", low)
		c.Want("WORK_COMPLETE", low, "") // a field that the original message lacks is empty
	}, "retype SUBMIT_JOB_HIGH SUBMIT_JOB_LOW", "retype from-server WORK_DATA WORK_WARNING", "retype WORK_FAIL WORK_COMPLETE", "retype JOB_ASSIGN_UNIQ JOB_ASSIGN")
}

// TestAnswerAndFollow tests that the fault answer replies to a request in place of the server, that follow sends a
// message after another one, and that faults do not apply to these messages.
func TestAnswerAndFollow(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c, w := dial(), dial()
		c.Send("SUBMIT_JOB", "f", "", "x")
		c.Want("ERROR", "QUEUE_ERROR", "full")
		c.Send("version")
		c.Want("ERR", "NO", "why")
		c.Send("SUBMIT_JOB", "g", "", "x")
		c.Want("JOB_CREATED", "*")
		w.Send("CAN_DO", "g")
		w.Send("PRE_SLEEP")
		w.Want("NOOP")
		w.Want("NOOP") // a fault does not apply to the messages that it sends
		c.Send("SUBMIT_JOB", "g", "", "x")
		c.Want("JOB_CREATED", "*")
		c.Want("WORK_FAIL", "H:x:1")
		w.Send("GRAB_JOB")
		w.Want("JOB_ASSIGN", "*", "g", "x")
	}, "answer SUBMIT_JOB ERROR QUEUE_ERROR full when function == \"f\"", "answer version ERR NO why", "follow JOB_CREATED WORK_FAIL H:x:1 nth=2", "follow NOOP NOOP")
}

// TestConditions tests that a fault with a condition applies only to messages whose fields fulfill it.
func TestConditions(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		c.Send("ECHO_REQ", "")
		for _, e := range []struct{ in, out string }{
			{"abcde", "one"}, {"ace", "one"}, {"aec", "aec"}, {"abcded", "abcded"}, {"a/c/e", "one"}, {"acecece", "one"},
			{"bcd", "bcd"}, {"bd", "bd"}, {"bed", "two"}, {"", ""},
		} {
			c.Send("ECHO_REQ", e.in)
			if e.in != "" {
				c.Want("ECHO_RES", e.out)
			}
		}
		c.Send("ECHO_REQ", "\u00e9\xff")
		c.Want("ECHO_RES", "three bytes")
		c.Send("OPTION_REQ", "x")
		c.Send("SUBMIT_JOB", "f", "", "")
		h := c.Want("JOB_CREATED", "*")[0]
		c.Send("status")
		c.Want("status-reply", "f", "1", "0", "0")
		c.Send("CAN_DO", "f")
		c.Send("GRAB_JOB")
		c.Want("JOB_ASSIGN", h, "f", "")
		c.Send("status")
		c.Want("status-reply", "f", "9", "1", "1")
	}, `drop ECHO_REQ when data == ""`, `alter ECHO_RES data=one when data matches "^a.*c.*e$"`, `alter ECHO_RES data=two when data matches "^b.d$" nth=2`, `alter ECHO_RES data="three bytes" when len(data) == 3 and data startsWith "\u00e9"`, `alter status-reply total=9 when "1" in running`, `drop from-peer * when option == "x"`)
}

// TestAskAndReread tests that the fault ask makes the server handle another request first, that reread replaces the
// bytes of a request, and that a field can be computed from its value.
func TestAskAndReread(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		c.Send("ECHO_REQ", "f") // this makes the fault submit a job
		c.Want("ECHO_RES", "f")
		c.Send("ECHO_REQ", "one")
		c.Want("ECHO_RES", "two")
		c.Send("status")
		c.Want("status-reply", "f", "5", "0", "0")
		c.Send("CAN_DO", "f")
		c.Send("GRAB_JOB")
		c.Want("JOB_ASSIGN", "*", "f", "asked")
	}, `ask ECHO_REQ SUBMIT_JOB_BG f "" asked when data == "f"`, `reread ECHO_REQ {replace_all(raw, "one$", "two")}`, "alter status-reply [f]={number(it) + 4}")
}

// TestFaultsOfIllegalMessages checks that fields that an illegal message lacks are empty in conditions.
func TestFaultsOfIllegalMessages(t *testing.T) {
	o := refserver.Options{Protocol: beanstalk.Protocol}
	p := &inject.Protocol{Protocol: beanstalk.Protocol, New: func() refserver.Machine { return tubes.New(tubes.Options{}) }, Paired: true}
	m, err := p.Wrap(p.New(), &o, "pass put when delay == \"\"\ndrop put when ttr == \"none\"\nanswer use BAD_FORMAT when len(tube) == 1")
	if err != nil {
		t.Fatal(err)
	}
	m.Errors = func(err error) { t.Error(err) }
	synctest.Test(t, func(t *testing.T) {
		srv := refserver.New(m, o)
		defer srv.Close()
		near := peertest.Connect(t, srv)
		near.Write([]byte("put high\r\nput 0 0 none 1\r\nx\r\nuse a\r\nuse\r\nuse ab\r\n"))
		want := "BAD_FORMAT\r\nBAD_FORMAT\r\nBAD_FORMAT\r\nUSING ab\r\n"
		got := make([]byte, len(want))
		if n, err := io.ReadFull(near, got); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got[:n], err, want)
		}
		near.Reset()
	})
}
