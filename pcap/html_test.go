package pcap_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/pcap"
)

// pageTalk writes messages of two connections, one of a client (0) and one of a worker (1).
type pageTalk struct {
	t     *testing.T
	w     *pcap.Writer
	sess  [2]codec.Session
	clock time.Time
}

func (c *pageTalk) say(conn int, from codec.Side, name string, args ...string) {
	c.t.Helper()
	m := codec.Message{Type: gearman.Protocol.TypeNamed(name)}
	for _, a := range args {
		m.Args = append(m.Args, []byte(a))
	}
	raw, err := c.sess[conn].Append(nil, from, &m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.clock = c.clock.Add(time.Millisecond)
	if err := c.w.Write(pcap.Event{Conn: conn, From: from, Kind: pcap.Data, Data: raw, At: c.clock}); err != nil {
		c.t.Fatal(err)
	}
}

// pageOf returns the page about a capture of jobs that fail, that complete, and that do not end.
func pageOf(t *testing.T, jobs int, function string) string {
	t.Helper()
	var file bytes.Buffer
	w, err := pcap.NewWriter(&file, gearman.Protocol.DefaultPort)
	if err != nil {
		t.Fatal(err)
	}
	c := pageTalk{t: t, w: w, clock: time.Unix(1e9, 0)}
	for i := range c.sess {
		c.sess[i] = gearman.Protocol.NewSession(codec.Options{})
	}
	c.say(1, codec.Peer, "CAN_DO", function)
	for i := range jobs {
		handle := fmt.Sprintf("H:<i>:%d", i)
		c.say(0, codec.Peer, "SUBMIT_JOB", function, "", "input")
		c.say(0, codec.Server, "JOB_CREATED", handle)
		c.say(1, codec.Peer, "GRAB_JOB")
		c.say(1, codec.Server, "JOB_ASSIGN", handle, function, "input")
		c.say(1, codec.Peer, "WORK_COMPLETE", handle, "output")
		c.say(0, codec.Server, "WORK_COMPLETE", handle, "output")
	}
	c.say(0, codec.Peer, "SUBMIT_JOB", function, "", "input")
	c.say(0, codec.Server, "JOB_CREATED", "H:forgotten")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := pcap.NewFile("page.pcap", &file)
	if err != nil {
		t.Fatal(err)
	}
	p := pcap.NewPage()
	d := pcap.NewDecoder(pcap.Options{}, p.Add)
	if err := d.Decode(f); err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := p.WriteHTML(&page, `</title><b>"a" & 'b'`, d); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

func TestPageStandsAlone(t *testing.T) {
	page := strings.ReplaceAll(pageOf(t, 3, "<script>reverse"), "&#43;", "+")
	for _, want := range []string{"4 jobs, 21 messages", "2 connections", "H:&lt;i&gt;:2", "&lt;script&gt;reverse", "never assigned",
		"submitted (connection 2), created +1.00 ms (connection 2), assigned +3.00 ms (connection 1), completed +4.00 ms (connection 1), result delivered +5.00 ms"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if found := regexp.MustCompile(`(?i)\b(src|href)\s*=|@import|url\(|<script`).FindString(page); found != "" {
		t.Errorf("the page fetches or runs something: %s", found)
	}
	if strings.Contains(page, "</title><b>") || strings.Contains(page, "H:<i>") {
		t.Error("what a capture says is taken for markup")
	}
	if strings.Contains(page, "ZgotmplZ") {
		t.Error("the template refuses a value")
	}
	for _, class := range []string{"wait", "run", "return", "up", "down"} {
		if !strings.Contains(page, `<i class="`+class+`" style="left:`) {
			t.Errorf("there is no bar of class %s", class)
		}
	}
}

func TestPageIsBounded(t *testing.T) {
	page := pageOf(t, 5000, "reverse")
	if n := len(page); n > 250_000 {
		t.Errorf("the page has %d bytes", n)
	}
	n, left := 0, 0
	_, text, _ := strings.Cut(page, "with the first message about its job")
	if _, err := fmt.Sscanf(strings.TrimLeft(text, ". \n"), "%d jobs are shown, %d,%03d are not", &n, new(int), &left); err != nil || n < 100 || n > 150 {
		t.Errorf("%d jobs are drawn: %v", n, err)
	}
	if rows := strings.Count(page, `<span class="name`) - 2; rows != n { // and two connections
		t.Errorf("%d rows are drawn, not %d", rows, n)
	}
}

func TestPageOfNothing(t *testing.T) {
	p := pcap.NewPage()
	var page bytes.Buffer
	if err := p.WriteHTML(&page, "empty", pcap.NewDecoder(pcap.Options{}, p.Add)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "The capture contains no jobs.") {
		t.Error("it is not said that no jobs were seen")
	}
}
