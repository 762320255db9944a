package refserver_test

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/refserver"
	machine "jobwire/refserver/gearman"
	"jobwire/refserver/internal/peertest"
)

func TestParseFault(t *testing.T) {
	for text, want := range map[string]refserver.Fault{
		"drop NOOP":                             {Action: refserver.Drop, Side: codec.Server, Type: "NOOP"},
		"drop from-peer WORK_DATA nth=2":        {Action: refserver.Drop, Side: codec.Peer, Type: "WORK_DATA", Nth: 2},
		"drop from-server WORK_DATA":            {Action: refserver.Drop, Side: codec.Server, Type: "WORK_DATA"},
		"drop GRAB_JOB":                         {Action: refserver.Drop, Side: codec.Peer, Type: "GRAB_JOB"},
		"delay WORK_COMPLETE 500ms":             {Action: refserver.Delay, Side: codec.Server, Type: "WORK_COMPLETE", Delay: 500 * time.Millisecond},
		"duplicate JOB_CREATED":                 {Action: refserver.Duplicate, Side: codec.Server, Type: "JOB_CREATED"},
		"split * 1":                             {Action: refserver.Split, Side: codec.Server, Type: "*", Size: 1},
		"split * 3 2ms nth=4":                   {Action: refserver.Split, Side: codec.Server, Type: "*", Size: 3, Delay: 2 * time.Millisecond, Nth: 4},
		"alter JOB_CREATED job-handle=H:x:1":    {Action: refserver.Alter, Side: codec.Server, Type: "JOB_CREATED", Field: "job-handle", Value: "H:x:1"},
		"alter from-peer ECHO_REQ data=a b = c": {Action: refserver.Alter, Side: codec.Peer, Type: "ECHO_REQ", Field: "data", Value: "a b = c"},
		"close JOB_ASSIGN":                      {Action: refserver.Close, Side: codec.Server, Type: "JOB_ASSIGN"},
	} {
		if got, err := refserver.ParseFault(gearman.Protocol, text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, hint := range map[string]string{
		"":                               "duplicate",
		"explode NOOP":                   "duplicate",
		"drop":                           "drop TYPE",
		"drop NOPE":                      "JOB_CREATED",
		"drop from-peer NOOP":            "never sent by the peer",
		"drop NOOP twice":                `"twice"`,
		"drop NOOP nth=0":                "from 1",
		"delay NOOP":                     "500ms",
		"delay NOOP soon":                "500ms",
		"split from-peer * 1":            "server",
		"split * 0":                      "from 1",
		"split * 1 1h":                   "1s",
		"alter JOB_CREATED":              "FIELD=VALUE",
		"alter JOB_CREATED handle=H:x:1": "job-handle",
	} {
		if _, err := refserver.ParseFault(gearman.Protocol, text); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: error %v, want a mention of %q", text, err, hint)
		}
	}
}

func faults(t *testing.T, texts ...string) refserver.Options {
	var o refserver.Options
	for _, text := range texts {
		f, err := refserver.ParseFault(gearman.Protocol, text)
		if err != nil {
			t.Fatal(err)
		}
		o.Faults = append(o.Faults, f)
	}
	return o
}

func TestDrop(t *testing.T) {
	bubble(t, faults(t, "drop NOOP", "drop from-peer ECHO_REQ nth=2", "drop version"), func(t *testing.T, dial func() *peertest.Peer) {
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
	})
	// A command that was dropped does not spoil the replies to those behind it.
	bubble(t, faults(t, "drop version"), func(t *testing.T, dial func() *peertest.Peer) {
		a := dial()
		if _, err := a.Conn.Write([]byte("version\n")); err != nil {
			t.Fatal(err)
		}
		a.Send("maxqueue", "f", "1")
		a.Want("OK")
	})
}

func TestDelay(t *testing.T) {
	bubble(t, faults(t, "delay JOB_CREATED 500ms", "delay CAN_DO 2s"), func(t *testing.T, dial func() *peertest.Peer) {
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
		c.Conn.Close() // what is late finds nobody, and harms nobody
		time.Sleep(2 * time.Second)
	})
}

func TestDuplicateAndAlter(t *testing.T) {
	o := faults(t, "duplicate JOB_CREATED nth=1", "alter JOB_CREATED job-handle=H:x:1", "alter from-peer ECHO_REQ data=other",
		"duplicate GRAB_JOB", "alter STATUS_RES known=maybe")
	bubble(t, o, func(t *testing.T, dial func() *peertest.Peer) {
		c := dial()
		c.Send("SUBMIT_JOB_BG", "f", "", "1")
		c.Want("JOB_CREATED", "H:test:1")
		c.Want("JOB_CREATED", "H:test:1")
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
	})
}

func TestCloseFault(t *testing.T) {
	bubble(t, faults(t, "close JOB_ASSIGN", "close from-peer SUBMIT_JOB_LOW"), func(t *testing.T, dial func() *peertest.Peer) {
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
	})
}

// Over a pipe a read returns what one write wrote.
func TestSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := faults(t, "split ECHO_RES 5 10ms nth=2")
		o.Protocol = gearman.Protocol
		srv := refserver.New(machine.New(machine.Options{}), o)
		near, far := net.Pipe()
		go srv.ServeConn(t.Context(), far)
		echo := []byte("\x00REQ\x00\x00\x00\x10\x00\x00\x00\x04data")
		go near.Write(bytes.Repeat(echo, 3))
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
		near.Close()
		srv.Close()
	})
}

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
		"1 server version-reply 11",
		"1 peer 12 gearman.packet.type-known",
		"1 server ERROR",
		"1 peer GRAB_JOB 12",
		"1 server GRAB_JOB 12 gearman.packet.type-direction",
	}
	if !slices.Equal(log, want) {
		t.Errorf("traced\n%s\nwant\n%s", strings.Join(log, "\n"), strings.Join(want, "\n"))
	}
}
