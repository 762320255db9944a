package fuzzcmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/capturefile"
	"jobwire/cmd/internal/cli"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz"
	"jobwire/fuzz/input"
	"jobwire/fuzz/report"
	"jobwire/fuzz/triage"
	"jobwire/internal/newfile"
	"jobwire/internal/version"
)

// fuzzOutput prints the progress of the fuzzer, and saves and prints its findings.
type fuzzOutput struct {
	mu     sync.Mutex
	w, e   io.Writer
	sys    *catalog.Entry
	o      *fuzzOptions
	live   *live // nil: the output is lines
	last   time.Time
	prev   fuzz.Stats
	known  []string
	err    error
	target string
	waive  []codec.RuleID
	all    []*triage.Finding
	files  map[*triage.Finding]string // name of the transcript of each finding
	saved  int                        // number of candidates saved
	checks checker                    // runs the commands of the findings
	page   *cli.TextFile              // for the HTML report, or nil
}

// newFuzzOutput creates the files of the output, and reads from the folder of --state which findings earlier runs have
// reported.
func newFuzzOutput(cmd *cobra.Command, sys *catalog.Entry, o *fuzzOptions) (*fuzzOutput, error) {
	out := &fuzzOutput{w: cmd.OutOrStdout(), e: cmd.ErrOrStderr(), sys: sys, o: o, last: time.Now(),
		files: map[*triage.Finding]string{}}
	out.checks.try = out.check
	if o.html != "" { // create the file before the run, so that an invalid name is reported at once
		var err error
		if out.page, err = cli.CreateText(o.html); err != nil {
			return nil, err
		}
	}
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

// begin adds the inputs that earlier runs have saved in the folder of --state to the seeds, prints the first line, with
// the random seed of the run, and starts the live display and the checks of commands.
func (out *fuzzOutput) begin(cmd *cobra.Command, cfg *fuzz.Config) {
	out.target, out.waive = out.o.target.Name(out.sys), cfg.Known.Waive
	if out.o.state != "" {
		more, err := input.ReadCorpus(cfg.Protocol, filepath.Join(out.o.state, "pool"))
		if err != nil {
			fmt.Fprintf(out.e, "jobwire: %v; fuzz starts without the saved inputs\n", err)
		}
		cfg.Seeds = append(cfg.Seeds, more...)
	}
	fmt.Fprintf(out.e, "jobwire: fuzzing %s; random seed %d, %d seed inputs\n", out.target, cfg.Seed, len(cfg.Seeds))
	if !out.o.quiet {
		out.live = showLive(cmd, out.target, out.o)
	}
	if cli.Alone && out.o.target.Addr == "" { // a server at an address cannot be restarted
		out.checks.start(cmd.Context())
	}
}

// keep saves the corpus of the fuzzer, if --state is set.
func (out *fuzzOutput) keep(convs []*input.Input) {
	if out.o.state == "" {
		return
	}
	if err := input.WriteCorpus(filepath.Join(out.o.state, "pool"), convs); err != nil {
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

// progress updates the live display or, if there is none, prints a line of statistics at most every 10 s.
func (out *fuzzOutput) progress(s fuzz.Stats) {
	out.mu.Lock()
	defer out.mu.Unlock()
	if out.live.update(s) || out.o.quiet || time.Since(out.last) < 10*time.Second {
		return
	}
	fmt.Fprintf(out.e, "jobwire: %s\n", statsLine(s, out.prev))
	out.prev, out.last = s, time.Now()
}

// statsLine returns the line of progress. prev are the figures of the previous line, so the rate is that of the time
// between the two lines.
func statsLine(s, prev fuzz.Stats) string {
	rate := 0.0
	if d := s.Elapsed - prev.Elapsed; d > 0 {
		rate = float64(s.Executions-prev.Executions) / d.Seconds()
	}
	return fmt.Sprintf("%v: %d executions, %.0f/s; %d inputs kept; %s, %s; %s",
		s.Elapsed.Round(time.Second), s.Executions, rate, s.Corpus, cli.Counted(s.Findings, "finding"),
		cli.Counted(s.Duplicates, "duplicate"), s.Doing)
}

// log prints a line about the reproduction of a candidate.
func (out *fuzzOutput) log(line string) {
	out.mu.Lock()
	defer out.mu.Unlock()
	fmt.Fprintf(out.e, "jobwire: %s\n", cli.OneLine(line))
}

// found saves a finding. Findings are printed at the end, in order of severity.
func (out *fuzzOutput) found(fd *triage.Finding) {
	path, err := out.save(fd, out.o.findings)
	if err == nil {
		err = out.remember(fd)
	}
	if err != nil {
		out.fail(err)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	out.all = append(slices.DeleteFunc(out.all, func(o *triage.Finding) bool { return o.Name == fd.Name }), fd)
	out.files[fd] = path
	f := out.describe(fd, path)
	if out.checks.add(fd); out.live.found(f) || out.o.quiet {
		return
	}
	what := "new finding"
	if fd.Of != nil {
		what = "another symptom of " + fd.Of.Name
	}
	saved := "saved in " + path
	if err != nil {
		saved = fmt.Sprintf("not saved: %v", err)
	}
	fmt.Fprintf(out.e, "jobwire: %s, %s; %s\n", what, cli.OneLine(f.Headline()), saved)
}

// remember adds the key of a finding to those that later runs with the folder of --state do not report.
func (out *fuzzOutput) remember(fd *triage.Finding) error {
	if out.o.state == "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(out.o.state, "found"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, strconv.Quote(fd.Key))
	return errors.Join(err, f.Close())
}

// dropped removes a finding and its files, because the crash has the same cause as another finding.
func (out *fuzzOutput) dropped(fd *triage.Finding) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.all = slices.DeleteFunc(out.all, func(o *triage.Finding) bool { return o == fd })
	out.live.dropped(fd.Name)
	out.checks.drop(fd)
	base := strings.TrimSuffix(out.files[fd], ".wire")
	for _, ext := range []string{".wire", ".pcapng", ".corpus", ".log"} {
		if err := os.Remove(base + ext); err != nil && !errors.Is(err, os.ErrNotExist) && out.err == nil {
			out.err = err
		}
	}
	delete(out.files, fd)
}

// saveLog saves the log of a server.
func (out *fuzzOutput) saveLog(l *input.Log) {
	err := os.MkdirAll(out.o.logs, 0o777)
	if err == nil {
		err = cli.Create(filepath.Join(out.o.logs, fmt.Sprintf("worker-%02d-server-%04d.log", l.Worker, l.Generation)),
			l.Write)
	}
	if err != nil {
		out.fail(err)
	}
}

// candidate saves a candidate that the fuzzer had no time to reproduce.
func (out *fuzzOutput) candidate(fd *triage.Finding) {
	if _, err := out.save(fd, out.candidates()); err != nil {
		out.fail(err)
		return
	}
	out.saved++
}

func (out *fuzzOutput) candidates() string { return filepath.Join(out.o.findings, "candidates") }

// save writes the files of a finding to a folder and returns the name of the transcript.
func (out *fuzzOutput) save(fd *triage.Finding, folder string) (string, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", err
	}
	base := filepath.Join(folder, fd.Name)
	var wire bytes.Buffer
	f := out.describe(fd, base+".wire")
	fmt.Fprintf(&wire, "# %s\n# %s\n# Observed: %s\n# %s\n# Server: %s\n# To repeat it: %s\n# Found by jobwire %s, random seed %d\n",
		cli.OneLine(f.Headline()), f.Impact, cli.OneLine(f.Text), f.Evidence, cli.OneLine(out.target), cli.OneLine(f.Command),
		version.Get(),
		out.o.seed)
	if rule := f.Cites(); rule != "" {
		fmt.Fprintf(&wire, "# Rule %s\n", rule)
	}
	if stack := f.Frames(); stack != "" {
		fmt.Fprintf(&wire, "# Stack: %s\n", stack)
	}
	if way(fd, out.checks.of(fd)) == fuzzing {
		fmt.Fprintf(&wire, "# 'jobwire play' with this file does not show the fault. 'jobwire fuzz --seed-file' with this file shows it.\n")
	}
	if fd.Fault.Output != "" {
		wire.WriteString("# Last output of the server:\n")
		for line := range strings.Lines(fd.Fault.Output) {
			fmt.Fprintf(&wire, "#   %s\n", strings.TrimRight(line, "\n "))
		}
	}
	fmt.Fprintf(&wire, "\n@protocol %s\n", out.sys.Protocol.Name)
	wire.Write(fd.Text)
	err := cli.Create(base+".wire", func(w io.Writer) error {
		_, err := w.Write(wire.Bytes())
		return err
	})
	if log := cmp.Or(out.checks.of(fd).log, fd.Log); err == nil && log != nil {
		err = cli.Create(base+".log", log.Write)
	}
	if err != nil {
		return "", err
	}
	files := map[string][]byte{} // not text
	events, at := fd.Events(out.sys.Protocol)
	var packets, raw bytes.Buffer
	if len(events) > 0 {
		err := capturefile.Write(&packets, out.sys.Protocol, events, func(i int) []string {
			about := []string{capturefile.Described(out.sys.Protocol, &events[i])}
			if i == at {
				about = append(about, "Finding: "+cli.OneLine(f.Headline()), cli.OneLine(f.Text))
			}
			return about
		})
		if err != nil {
			return "", err
		}
		files[base+".pcapng"] = packets.Bytes()
	}
	for i := range events {
		if ev := &events[i]; ev.Verb <= transcript.Raw && ev.From == 0 {
			raw.Write(ev.Frame.Raw)
		}
	}
	if fd.Tried > 0 {
		files[base+".corpus"] = fmt.Appendf(nil, "go test fuzz v1\n[]byte(%q)\n", raw.Bytes())
	}
	for name, b := range files {
		if err := newfile.Write(name, b); err != nil {
			return "", err
		}
	}
	return base + ".wire", nil
}

// End prints the findings, the most severe first, and a summary. It saves the report in the folder of the findings.
func (out *fuzzOutput) End(s fuzz.Stats, interrupted bool) error {
	out.checks.stop()
	out.live.end()
	out.mu.Lock()
	defer out.mu.Unlock()
	r := &report.Report{
		Jobwire: version.Get(), Protocol: out.sys.Protocol.Name, Title: out.sys.Protocol.Title, Target: out.target,
		Began: time.Now().Add(-s.Elapsed),
		Summary: report.Summary{
			Seconds: s.Elapsed.Seconds(), Executions: s.Executions, Timed: s.Timed, Repeats: s.Repeats, Messages: s.Messages,
			Corpus: s.Corpus, Features: s.Features,
			Findings: s.Findings, Duplicates: s.Duplicates, Candidates: s.Candidates, Examined: s.Examined,
			Failed: s.NotReproduced, Disputed: s.ReferenceFails, Unexamined: s.Unexamined, Starts: s.Starts, Seed: out.o.seed,
			Saved: out.saved, Folder: out.candidates(), Reason: "the run was stopped",
		},
	}
	if interrupted {
		r.Summary.Interrupted, r.Summary.Reason = true, "the run was interrupted"
	} else if d := out.o.duration; d > 0 && s.Elapsed >= d*9/10 {
		r.Summary.Reason = "the time ran out"
	}
	for _, group := range triage.Groups(out.sys.Protocol, out.all) {
		f := out.describe(group[0], out.files[group[0]])
		for _, fd := range group[1:] {
			f.Symptoms = append(f.Symptoms, out.describe(fd, out.files[fd]))
		}
		r.Findings = append(r.Findings, f)
	}
	err := out.saveAll(r)
	err = errors.Join(err, report.Formats[out.o.format](out.w, r))
	if out.page != nil {
		err = errors.Join(err, report.WriteHTML(out.page, r), out.page.Close())
	}
	return cmp.Or(out.err, err)
}

// saveAll saves the report, for 'jobwire fuzz report', and the findings again, with the number of observations and the
// commands that repeat them best. A run that has found nothing does not create the default folder.
func (out *fuzzOutput) saveAll(r *report.Report) error {
	for _, fd := range out.all {
		if out.files[fd] == "" {
			continue
		}
		if _, err := out.save(fd, out.o.findings); err != nil {
			return err
		}
	}
	if _, err := os.Stat(out.o.findings); err != nil {
		if len(out.all) == 0 && out.o.findings == defaultFindings {
			return nil
		}
		if err := os.MkdirAll(out.o.findings, 0o777); err != nil {
			return err
		}
	}
	return cli.Create(filepath.Join(out.o.findings, report.File), func(w io.Writer) error { return report.Save(w, r) })
}
