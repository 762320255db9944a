package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jobwire/codec/transcript"
	"jobwire/fuzz"
)

// fuzzOutput tells how fuzzing goes, and saves what it finds.
type fuzzOutput struct {
	mu     sync.Mutex
	w, e   io.Writer
	sys    *system
	o      *fuzzOptions
	live   bool
	shown  bool
	last   time.Time
	prev   fuzz.Stats
	known  []string
	err    error
	target string
}

func newFuzzOutput(cmd *cobra.Command, sys *system, o *fuzzOptions) (*fuzzOutput, error) {
	out := &fuzzOutput{w: cmd.OutOrStdout(), e: cmd.ErrOrStderr(), sys: sys, o: o, live: isTerminal(cmd.ErrOrStderr()), last: time.Now()}
	if o.state != "" {
		if err := os.MkdirAll(o.state, 0o777); err != nil {
			return nil, err
		}
		keys, err := os.ReadFile(filepath.Join(o.state, "found"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for line := range strings.Lines(string(keys)) {
			if key, err := strconv.Unquote(strings.TrimSpace(line)); err == nil {
				out.known = append(out.known, key)
			}
		}
	}
	return out, nil
}

func (out *fuzzOutput) begin(cfg *fuzz.Config) {
	out.target = out.o.target.name(out.sys)
	if out.o.state != "" {
		more, err := fuzz.ReadPool(cfg.Protocol, filepath.Join(out.o.state, "pool"))
		if err != nil {
			fmt.Fprintf(out.e, "jobwire: %v: begins without it\n", err)
		}
		cfg.Seeds = append(cfg.Seeds, more...)
	}
	fmt.Fprintf(out.e, "jobwire: fuzzing %s, seed %d, %d conversations to begin with\n", out.target, cfg.Seed, len(cfg.Seeds))
}

// keep saves the pool.
func (out *fuzzOutput) keep(convs []*fuzz.Conv) {
	if out.o.state == "" {
		return
	}
	if err := fuzz.WritePool(filepath.Join(out.o.state, "pool"), convs); err != nil {
		out.fail(err)
	}
}

func (out *fuzzOutput) fail(err error) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.err == nil {
		out.err = err
	}
}

// progress shows a line that is overwritten on a terminal; elsewhere now and then one that is
// not.
func (out *fuzzOutput) progress(s fuzz.Stats) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if !out.live && time.Since(out.last) < 10*time.Second {
		return
	}
	line := statsLine(s, out.prev)
	out.prev, out.last = s, time.Now()
	if out.live {
		fmt.Fprintf(out.e, "\r\x1b[K%s", line)
		out.shown = true
	} else {
		fmt.Fprintf(out.e, "jobwire: %s\n", line)
	}
}

func statsLine(s, prev fuzz.Stats) string {
	rate := 0.0
	if d := s.Elapsed - prev.Elapsed; d > 0 {
		rate = float64(s.Conversations-prev.Conversations) / d.Seconds()
	}
	return fmt.Sprintf("%v  %d conversations, %.0f/s; pool %d, edges %d; findings %d, seen again %d, not confirmed %d, disputed %d; %s",
		s.Elapsed.Round(time.Second), s.Conversations, rate, s.Pool, s.Edges, s.Findings, s.Again, s.Unconfirmed, s.Disputed, s.Doing)
}

// log tells what became of a suspicion.
func (out *fuzzOutput) log(line string) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.clear()
	fmt.Fprintf(out.e, "jobwire: %s\n", oneLine(line))
}

func (out *fuzzOutput) clear() {
	if out.shown {
		fmt.Fprint(out.e, "\r\x1b[K")
		out.shown = false
	}
}

// found saves a finding, and tells it.
func (out *fuzzOutput) found(fd *fuzz.Finding) {
	path, err := out.save(fd)
	if err != nil {
		out.fail(err)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	out.clear()
	if out.o.format == "json" {
		json.NewEncoder(out.w).Encode(findingJSON(fd, path))
		return
	}
	fmt.Fprintf(out.w, "%s\n  %s\n  shown by %d of %d fresh servers; %s\n", fd.Name, fd.Fault, fd.Shown, fd.Tried, path)
	for line := range strings.Lines(string(body(fd))) {
		fmt.Fprintf(out.w, "    %s\n", folded(strings.TrimSuffix(line, "\n")))
	}
	fmt.Fprintln(out.w)
}

// mostShown is how much of a line of a transcript is shown, in bytes: the file has all.
const mostShown = 200

func folded(line string) string {
	if len(line) <= mostShown {
		return line
	}
	return fmt.Sprintf("%s ... and %d bytes more", line[:mostShown], len(line)-mostShown)
}

// body is a transcript without what stands above its steps.
func body(fd *fuzz.Finding) []byte {
	if _, steps, ok := bytes.Cut(fd.Text, []byte("\n\n")); ok {
		return steps
	}
	return fd.Text
}

func findingJSON(fd *fuzz.Finding, path string) any {
	return struct {
		Name   string `json:"name"`
		Oracle string `json:"oracle"`
		Rule   string `json:"rule,omitempty"`
		Text   string `json:"text"`
		Words  string `json:"last_words,omitempty"`
		Shown  int    `json:"shown"`
		Tried  int    `json:"tried"`
		Plays  bool   `json:"plays"`
		File   string `json:"file"`
		Wire   string `json:"transcript"`
	}{fd.Name, fd.Fault.Oracle, string(fd.Fault.Rule), fd.Fault.Text, fd.Fault.Words, fd.Shown, fd.Tried, fd.Plays, path, string(body(fd))}
}

// save writes the files of a finding and returns the name of the transcript.
func (out *fuzzOutput) save(fd *fuzz.Finding) (string, error) {
	if err := os.MkdirAll(out.o.out, 0o777); err != nil {
		return "", err
	}
	base := filepath.Join(out.o.out, fd.Name)
	var wire bytes.Buffer
	fmt.Fprintf(&wire, "# %s\n# Shown by %d of %d fresh servers of %s.\n", oneLine(fd.Fault.String()), fd.Shown, fd.Tried, oneLine(out.target))
	if !fd.Plays {
		fmt.Fprintf(&wire, "# Playing it does not show the fault by itself: that takes jobwire fuzz, with this as --seed-file.\n")
	}
	if fd.Fault.Words != "" {
		wire.WriteString("# The server's last words:\n")
		for line := range strings.Lines(fd.Fault.Words) {
			fmt.Fprintf(&wire, "#   %s\n", strings.TrimRight(printable(line), "\n "))
		}
	}
	fmt.Fprintf(&wire, "\n@protocol %s\n", out.sys.protocol.Name)
	wire.Write(fd.Text)
	files := map[string][]byte{base + ".wire": wire.Bytes()}
	events := fd.Events(out.sys.protocol)
	var capture, raw bytes.Buffer
	if len(events) > 0 {
		if err := writeCapture(&capture, out.sys.protocol.DefaultPort, events); err != nil {
			return "", err
		}
		files[base+".pcap"] = capture.Bytes()
	}
	for i := range events {
		if ev := &events[i]; ev.Verb <= transcript.Raw && ev.From == 0 {
			raw.Write(ev.Frame.Raw)
		}
	}
	files[base+".corpus"] = fmt.Appendf(nil, "go test fuzz v1\n[]byte(%q)\n", raw.Bytes())
	for name, b := range files {
		if err := os.WriteFile(name, b, 0o666); err != nil {
			return "", err
		}
	}
	if out.o.state != "" {
		f, err := os.OpenFile(filepath.Join(out.o.state, "found"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		if err != nil {
			return "", err
		}
		_, err = fmt.Fprintln(f, strconv.Quote(fd.Key))
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	return base + ".wire", nil
}

func oneLine(s string) string { return printable(strings.Join(strings.Fields(s), " ")) }

func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (r < ' ' || r == 0x7f) {
			return '?'
		}
		return r
	}, s)
}

// end tells how it was.
func (out *fuzzOutput) end(s fuzz.Stats) error {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.clear()
	if out.o.format == "json" {
		json.NewEncoder(out.w).Encode(struct {
			Seconds       float64 `json:"seconds"`
			Conversations int64   `json:"conversations"`
			Messages      int64   `json:"messages"`
			Pool          int     `json:"pool"`
			Edges         int     `json:"edges"`
			Findings      int     `json:"findings"`
			Again         int     `json:"again"`
			Unconfirmed   int     `json:"unconfirmed"`
			Disputed      int     `json:"disputed"`
			Starts        int     `json:"starts"`
			Seed          uint64  `json:"seed"`
		}{s.Elapsed.Seconds(), s.Conversations, s.Messages, s.Pool, s.Edges, s.Findings, s.Again, s.Unconfirmed, s.Disputed, s.Starts, out.o.seed})
	} else {
		fmt.Fprintf(out.w, "%d findings in %v: %d conversations, %.0f a second; pool %d, edges %d; seen again %d, not confirmed %d, disputed %d; seed %d\n",
			s.Findings, s.Elapsed.Round(time.Millisecond), s.Conversations, float64(s.Conversations)/s.Elapsed.Seconds(), s.Pool, s.Edges, s.Again, s.Unconfirmed, s.Disputed, out.o.seed)
	}
	return out.err
}
