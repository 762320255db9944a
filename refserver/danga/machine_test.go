package danga

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/danga"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/play"
	"jobwire/refserver"
	"jobwire/refserver/internal/peertest"
)

// TestEveryRequestHasAHandler tests that the reference server has a handler for each request, and for no message that
// only a server sends.
func TestEveryRequestHasAHandler(t *testing.T) {
	for _, msgType := range danga.Protocol.Types {
		if has := handlers[msgType.Index] != nil; has != (msgType.Req != 0) {
			t.Errorf("%s: sent to the server: %v, has a handler: %v", msgType.Name, msgType.Req != 0, has)
		}
	}
}

// TestConversations tests that the best and the worst case of the draft run on the reference server as the draft
// describes them.
func TestConversations(t *testing.T) {
	for _, name := range []string{"best.wire", "worst.wire"} {
		t.Run(name, func(t *testing.T) {
			src, err := corpus.FS.ReadFile("danga/" + name)
			if err != nil {
				t.Fatal(err)
			}
			scripts, err := transcript.Parse(danga.Protocol, name, src)
			if err != nil || len(scripts) != 1 {
				t.Fatalf("%d scripts, %v", len(scripts), err)
			}
			synctest.Test(t, func(t *testing.T) {
				srv := refserver.New(New(Options{}), refserver.Options{Protocol: danga.Protocol})
				dial := func(context.Context, transcript.Actor) (net.Conn, error) { return peertest.Connect(t, srv), nil }
				if r := play.Peers(t.Context(), scripts[0], dial, play.Options{}); r.Failure != nil {
					var report strings.Builder
					play.WriteReport(&report, scripts[0], r, play.ReportOptions{Bytes: true})
					t.Errorf("%v\n%s", r.Failure, report.String())
				}
				srv.Close()
			})
		})
	}
}

// TestStatusAndResultOfAsyncJob tests that any application can request the status and the result of an asynchronous
// job, also after the application that created it has disconnected, and that unknown handles get the reply for unknown
// jobs.
func TestStatusAndResultOfAsyncJob(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		a, b, w := dial(), dial(), dial()
		h := a.create("rss", "", async, "feed")
		if h != "J:test:1" {
			t.Errorf("handle %q, want J:test:1", h)
		}
		state := func(p peerOf, n, d, left, took uint32, code, data string) {
			t.Helper()
			p.Send("job_status_req", h)
			p.Want("job_status_res", num(n), num(d), num(left))
			p.Send("job_complete_req", h)
			p.Want("job_complete_res", num(took), code, data)
		}
		const unknownTime = 1<<32 - 1
		state(a, 0, 1, unknownTime, 0, "\x00", "")
		w.connect("rss")
		w.gets("rss", "feed")
		state(a, 0, 1, unknownTime, 0, "\x00", "")
		w.Send("job_status_announce", num(1), num(4), num(30))
		w.Send("job_status_announce", num(2), num(4), num(20))
		state(a, 2, 4, 20, 0, "\x00", "")
		a.Leave()
		w.finishes("\x00", "news")
		state(b, 1, 1, 0, 1, "\x00", "news")
		time.Sleep(time.Minute)
		state(b, 1, 1, 0, 1, "\x00", "news") // neither requests nor time change the reply
		for _, unknown := range []string{"J:test:2", "J:test:01", "J:test:", "J:other:1", "J:test:18446744073709551616"} {
			h = unknown
			state(b, 0, 0, unknownTime, 0, "\xff", "")
		}
	})
}

// TestThrowAwayJobHasNoReplies tests that a throw-away job is run although its application has disconnected, without
// messages to the application, and that nothing is stored about it afterwards.
func TestThrowAwayJobHasNoReplies(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *machine, dial func() peerOf) {
		a, w := dial(), dial()
		a.create("captcha", "1", throwAway, "")
		a.quiet()
		a.Leave()
		w.connect("captcha")
		w.gets("captcha", "")
		w.Send("job_status_announce", num(1), num(2), num(3))
		w.finishes("\x00", "nobody reads this")
		w.getsNone()
		if len(m.jobs)+len(m.keyed) != 0 {
			t.Errorf("%d jobs and %d keys are left", len(m.jobs), len(m.keyed))
		}
	})
}

// TestJobOfDisconnectedApplication tests that a queued job for which no application waits any more is removed, that an
// asynchronous or merged one remains, and that a running one is not run again.
func TestJobOfDisconnectedApplication(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, m *machine, dial func() peerOf) {
		w := dial()
		gone := func(typ string) {
			a := dial()
			a.create("f", "key", typ, "args")
			a.Leave()
		}
		gone(syncWait)
		w.connect("f")
		w.getsNone() // no application waits for it any more
		gone(async)
		gone(syncWait) // other applications wait for it
		w.gets("f", "args")
		w.finishes("\x00", "")

		a := dial()
		a.create("f", "", syncWait, "running")
		w.gets("f", "running")
		a.Leave()
		w.finishes("\x00", "for nobody")
		w.getsNone()

		a = dial()
		a.create("f", "", syncWait, "running")
		w.gets("f", "running")
		a.Leave()
		w.Send("worker_disconnect")
		w.connect("f")
		w.getsNone() // its worker was lost, and no application waits for it
		if len(m.keyed) != 0 {
			t.Errorf("%d keys are left", len(m.keyed))
		}
	})
}

// TestHalfClosedApplicationGetsItsResult checks that an application that has shut down its direction gets its
// result.
func TestHalfClosedApplicationGetsItsResult(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		a, w := dial(), dial()
		a.create("f", "", syncWait, "x")
		a.CloseWrite()
		w.connect("f")
		w.gets("f", "x")
		w.finishes("\x00", "y")
		a.Want("job_complete_res", num(1), "\x00", "y")
		a.Ended()
	})
}

// TestMessageInWrongStateEndsOnlyItsConnection checks that a message that is not allowed in the state of a connection ends only this
// connection.
func TestMessageInWrongStateEndsOnlyItsConnection(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		witness, w := dial(), dial()
		h := witness.create("witness", "", async, "args")
		for _, tt := range []struct {
			name  string
			waits bool // the peer that violates the rule waits for a job
			send  []string
		}{
			{"progress of no job", false, []string{"job_status_announce", num(1), num(2), num(3)}},
			{"a result of no job", false, []string{"job_complete_announce", "\x00", ""}},
			{"a second sync job", true, []string{"job_create_req", "f", "", "\x00", syncWait, ""}},
			{"status while waiting", true, []string{"job_status_req", h}},
			{"completion while waiting", true, []string{"job_complete_req", h}},
		} {
			bad := dial()
			if tt.waits {
				bad.create("f", "", syncWait, "")
				bad.create("f", "", throwAway, "also")
			}
			bad.Send(tt.send[0], tt.send[1:]...)
			bad.Ended()
		}
		w.connect("witness", "f")
		w.gets("witness", "args")
		w.finishes("\x00", "")
		for range 3 {
			w.gets("f", "also")
			w.finishes("\x00", "")
		}
		w.getsNone()
		w.Send("job_complete_announce", "\x00", "twice")
		w.Ended()
	})
}

// TestRepliesHaveTheMagicOfTheRequest checks that the server replies with the magic bytes of the first request, and closes
// the connection at other magic bytes.
func TestRepliesHaveTheMagicOfTheRequest(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ *machine, dial func() peerOf) {
		p := dial()
		p.Raw([]byte("\x00\x01\xff\n\x06\x00\x00\x00\x00")) // job_assign_req
		p.Want("noop")
		p.Raw([]byte("GEAR\x06\x00\x00\x00\x00")) // job_assign_req
		p.Ended()
	})
}

// TestResultTooLarge checks that a result that does not fit into a packet to the application still ends the
// job.
func TestResultTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 1000
		m := New(Options{Name: "test"})
		srv := refserver.New(m, refserver.Options{Protocol: danga.Protocol, Codec: codec.Options{MaxData: most}})
		dial := func() peerOf {
			return peerOf{peertest.Dial(t, danga.Protocol, srv), t}
		}
		a, w := dial(), dial()
		w.connect("f")
		for _, tt := range []struct {
			size int
			code string
			want string
		}{{most - 5, "\x00", "\x00"}, {most - 4, "\x00", "\xff"}, {most - 1, "\x03", "\x03"}} {
			data := strings.Repeat("d", tt.size)
			a.create("f", "", syncWait, "")
			w.gets("f", "")
			w.finishes(tt.code, data)
			if tt.size > most-5 {
				data = ""
			}
			a.Want("job_complete_res", num(1), tt.want, data)
		}
		srv.Close()
	})
}

// TestHandlesNameTheServer tests that a job handle contains the printable ASCII characters of the server's name, up to
// 64, or a generated name.
func TestHandlesNameTheServer(t *testing.T) {
	for name, want := range map[string]string{"a b": "J:a b:1", "h\u00f6st\x00": "J:hst:1", strings.Repeat("x", 100): "J:" + strings.Repeat("x", 64) + ":1"} {
		bubble(t, Options{Name: name}, func(t *testing.T, _ *machine, dial func() peerOf) {
			if h := dial().create("f", "", async, ""); h != want {
				t.Errorf("%q makes the handle %q, want %q", name, h, want)
			}
		})
	}
	if a, b := New(Options{Name: "\xff"}).(*machine), New(Options{}).(*machine); len(a.prefix) < 8 || len(b.prefix) < 8 {
		t.Errorf("without a name handles begin with %s and %s", a.prefix, b.prefix)
	}
}
