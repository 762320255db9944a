package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/examples"
	"jobwire/internal/peers"
)

// finding is one section of docs/findings.md.
type finding struct {
	id, title, text string
	section         string   // the heading above it
	fields          []string // names, in order
}

// findingFields are the fields of every finding.
var findingFields = []string{"What happens", "How to trigger it", "What the specification says", "Affected versions", "Transcript"}

// findingSeverities are the headings of the tables in the index, with the severity of their findings.
var findingSeverities = []struct{ kind, severity string }{
	{"Crash or memory error", "critical"}, {"Hang or lost service", "high"}, {"Lost, duplicated or stuck job", "high"},
	{"Resource exhaustion", "high"}, {"Wrong answer", "medium"}, {"Cosmetic", "low"},
}

var (
	findingHead    = regexp.MustCompile(`(?m)^<a id="([a-z0-9-]+)"></a>\n#### (.+)\n`)
	findingField   = regexp.MustCompile(`(?m)^\*\*([^*\n]+):\*\*(.*)`)
	findingRow     = regexp.MustCompile(`(?m)^\| \[([^]]+)\]\(#([^)]+)\) \| (.+) \| (.+) \|$`)
	findingRule    = regexp.MustCompile("`((?:gearman|beanstalk|gearmonkey)\\.[a-z0-9.-]+)`")
	findingReplay  = regexp.MustCompile("(?ms)^```wire ([a-z-]+)(?: breaks ([a-z.-]+))?\n(.*?)^```$")
	findingSection = regexp.MustCompile(`(?m)^##?#? `)
	findingAbove   = regexp.MustCompile(`(?m)^### (.+)$`)
	findingCase    = regexp.MustCompile("(?m)^Case: (.*)$")
	findingCases   = regexp.MustCompile("^`([^`]+)`( \\(non-strict\\))?$")
)

// findingServers lists the sections about servers, with the name of the server's profile. Each finding in a section with
// covered set has a line that names its cases:
//
//	Case: `gearman.timeout.fails`
//	Case: `gearman.option.unknown`, `gearman.grab.unique-length[n=64]`
//	Case: `gearman.worker.all-yours` (non-strict)
//	Case: not visible to a client
//
// The server fails the case and its profile lists the case, or the case accepts the behavior as non-strict.
var findingServers = []struct {
	section, profile string
	covered          bool
}{
	{"C++ gearmand 1.1.20", "gearmand", true},
	{"Gearman::Server 1.130 (Perl)", "gearmand-perl", true},
	{"beanstalkd 1.12", "beanstalkd", true},
	{"GearMonkey on Redis 7.0.15", "redis-server", true},
}

// readFindings returns the text of docs/findings.md, the part before the first finding, and all findings.
func readFindings(t *testing.T) (page, start string, all []finding) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	page = string(doc)
	heads := findingHead.FindAllStringSubmatchIndex(page, -1)
	if n := strings.Count(page, "\n#### "); n != len(heads) || n < 80 {
		t.Fatalf("%d headings of findings, %d of them below an anchor", n, len(heads))
	}
	for i, h := range heads {
		end := len(page)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		f := finding{id: page[h[2]:h[3]], title: page[h[4]:h[5]], text: page[h[1]:end]}
		if above := findingAbove.FindAllStringSubmatch(page[:h[0]], -1); len(above) > 0 {
			f.section = above[len(above)-1][1]
		}
		code := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllStringFunc(f.text, func(s string) string { return strings.Repeat(" ", len(s)) })
		if next := findingSection.FindStringIndex(code); next != nil {
			f.text = f.text[:next[0]]
		}
		for _, m := range findingField.FindAllStringSubmatch(f.text, -1) {
			f.fields = append(f.fields, m[1])
		}
		all = append(all, f)
	}
	return page, page[:heads[0][0]], all
}

// TestFindingsPage checks the structure of docs/findings.md: every finding has the same
// fields and is in the index exactly once, below a severity, and all rules exist.
func TestFindingsPage(t *testing.T) {
	page, start, all := readFindings(t)
	ids := map[string]bool{}

	type row struct{ kind, title, software string }
	index := map[string]row{}
	_, tables, _ := strings.Cut(start, "\n## Findings by severity\n")
	severity := map[string]string{} // by ID
	want := "\n## Findings by severity\n\n| severity | kind of fault | findings |\n| --- | --- | --- |\n"
	for i, table := range strings.Split(tables, "\n### ")[1:] {
		kind, rows, _ := strings.Cut(table, "\n")
		for _, r := range findingRow.FindAllStringSubmatch(rows, -1) {
			if r[1] != r[2] {
				t.Errorf("the row %s links to %s", r[1], r[2])
			}
			if _, twice := index[r[1]]; twice {
				t.Errorf("%s is in the index twice", r[1])
			}
			index[r[1]] = row{kind, r[3], r[4]}
			if i < len(findingSeverities) {
				severity[r[1]] = findingSeverities[i].severity
			}
		}
		if i < len(findingSeverities) {
			known := findingSeverities[i]
			if kind != known.kind {
				t.Errorf("table %d of the index is %q, want %q", i+1, kind, known.kind)
			}
			want += fmt.Sprintf("| %s | %s | %d |\n", known.severity, linkTo(known.kind), strings.Count(rows, "\n| ["))
		}
	}
	if !strings.Contains(page, want) {
		t.Errorf("expected this table of severities:%s", want)
	}
	if want := findingsByProgram(all, severity); !strings.Contains(page, want) {
		t.Errorf("expected this table of programs:%s", want)
	}

	for _, f := range all {
		if ids[f.id] {
			t.Errorf("the anchor %s is there twice", f.id)
		}
		ids[f.id] = true
		r, ok := index[f.id]
		delete(index, f.id)
		switch {
		case !ok:
			t.Errorf("%s is not in the index", f.id)
		case severity[f.id] == "":
			t.Errorf("%s is in the table %q, which has no severity", f.id, r.kind)
		case r.title != f.title:
			t.Errorf("%s is %q in the index and %q in its heading", f.id, r.title, f.title)
		}
		if !slices.Equal(f.fields, findingFields) {
			t.Errorf("%s has the fields %q, want %q", f.id, f.fields, findingFields)
			continue
		}
		for _, m := range findingField.FindAllStringSubmatch(f.text, -1) {
			if m[1] != "Transcript" && len(strings.TrimSpace(m[2])) < 10 {
				t.Errorf("%s: the field %q is empty", f.id, m[1])
			}
		}
		if _, versions, _ := strings.Cut(f.text, "**Affected versions:**"); !strings.Contains(strings.Join(strings.Fields(versions), " "), r.software) {
			t.Errorf("%s: %q of the index is not among its affected versions", f.id, r.software)
		}
		_, replay, _ := strings.Cut(f.text, "**Transcript:**")
		if none := strings.HasPrefix(strings.TrimSpace(replay), "None"); none == findingReplay.MatchString(replay) {
			t.Errorf("%s has neither a transcript that can be replayed nor a reason that begins with None, or both", f.id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(index)) {
		t.Errorf("the index has a row %s without a finding", id)
	}
	for _, r := range findingRule.FindAllStringSubmatch(findingCase.ReplaceAllString(page, ""), -1) {
		if !slices.ContainsFunc(catalog.All(), func(e *catalog.Entry) bool { return e.Protocol.Rule(codec.RuleID(r[1])) != nil }) {
			t.Errorf("no protocol has a rule %s", r[1])
		}
	}
}

// linkTo returns a link to a heading.
func linkTo(heading string) string {
	for anchor := range anchorsOf("# " + heading + "\n") {
		return fmt.Sprintf("[%s](#%s)", heading, anchor)
	}
	return ""
}

// findingsByProgram returns the table of the findings of each program.
func findingsByProgram(all []finding, severity map[string]string) string {
	var b strings.Builder
	b.WriteString("\n## Findings by program\n\n| program | severity | findings |\n| --- | --- | --- |\n")
	for i, f := range all {
		if i > 0 && all[i-1].section == f.section {
			continue
		}
		program := " " + linkTo(f.section)
		for _, level := range []string{"critical", "high", "medium", "low"} {
			var links []string
			for _, other := range all {
				if other.section == f.section && severity[other.id] == level {
					links = append(links, fmt.Sprintf("[%s](#%s)", other.id, other.id))
				}
			}
			if len(links) > 0 {
				fmt.Fprintf(&b, "|%s | %s | %s |\n", program, level, strings.Join(links, ", "))
				program = ""
			}
		}
	}
	return b.String()
}

// TestFindingsCases checks the lines with "Case: " of the findings about servers.
func TestFindingsCases(t *testing.T) {
	t.Parallel()
	_, _, all := readFindings(t)
	for _, server := range findingServers {
		suite, profile := profileOf(t, server.profile)
		found := false
		for _, f := range all {
			if f.section != server.section {
				continue
			}
			found = true
			lines := findingCase.FindAllStringSubmatch(f.text, -1)
			if len(lines) > 1 || server.covered && len(lines) == 0 {
				t.Errorf("%s has %d lines \"Case: \", want 1", f.id, len(lines))
			}
			for _, l := range lines {
				rare := profile.Rare != nil && profile.Rare.Finding == f.id
				if l[1] == "not visible to a client" || l[1] == "any case, in rare runs" && rare {
					continue
				}
				for _, name := range strings.Split(l[1], ", ") {
					m := findingCases.FindStringSubmatch(name)
					if m == nil {
						t.Errorf("%s: expected a case such as `gearman.timeout.fails`, got %q", f.id, name)
						continue
					}
					checkFindingCase(t, f.id, suite, profile, m[1], m[2] == "")
				}
			}
		}
		if !found {
			t.Errorf("no finding is in the section %q", server.section)
		}
	}
}

// TestProfilesNameFindings checks that each failure in a profile names a finding about the server.
func TestProfilesNameFindings(t *testing.T) {
	t.Parallel()
	_, _, all := readFindings(t)
	for _, server := range findingServers {
		_, profile := profileOf(t, server.profile)
		listed := slices.Concat(profile.Known, profile.Flaky)
		if profile.Rare != nil {
			listed = append(listed, *profile.Rare)
		}
		for _, e := range listed {
			if !slices.ContainsFunc(all, func(f finding) bool { return f.id == e.Finding && f.section == server.section }) {
				t.Errorf("%s, %s: the section %q has no finding %q", server.profile, e.Cases, server.section, e.Finding)
			}
		}
	}
}

// checkFindingCase checks that a case, or an instance of one, exists, and whether the profile lists it as failing.
func checkFindingCase(t *testing.T, id string, suite *conform.Suite, profile *conform.Profile, name string, fails bool) {
	family, _, _ := strings.Cut(name, "[")
	if !slices.ContainsFunc(suite.Cases, func(c *conform.Case) bool { return c.ID == name || c.Family == name }) {
		t.Errorf("%s: no case %s exists", id, name)
		return
	}
	listed := slices.ContainsFunc(slices.Concat(profile.Known, profile.Flaky), func(e conform.Exception) bool {
		ok, _ := path.Match(e.Cases, family)
		instance, _, _ := strings.Cut(e.Cases, "[")
		return ok || e.Cases == name || name == family && instance == family
	})
	if fails && !listed {
		t.Errorf("%s: the profile %s does not list %s", id, profile.Name, name)
	}
	if !fails && slices.ContainsFunc(profile.Known, func(e conform.Exception) bool { return e.Cases == name }) {
		t.Errorf("%s: the profile %s lists %s, which is named as non-strict", id, profile.Name, name)
	}
}

// TestFindingsReplay replays every transcript in docs/findings.md against the affected server, or
// as the server of the affected library: up to five times if the finding says that the result
// depends on chance.
func TestFindingsReplay(t *testing.T) {
	skipIfShort(t)
	page, _, all := readFindings(t)
	count := 0
	for _, f := range all {
		tries := 1
		if strings.Contains(f.text, "depends on chance") {
			tries = 5
		}
		for i, b := range findingReplay.FindAllStringSubmatch(f.text, -1) {
			count++
			t.Run(fmt.Sprintf("%s/%d", f.id, i+1), func(t *testing.T) {
				t.Parallel()
				name, breaks, script := b[1], b[2], b[3]
				replay := replayServer
				if examples.Named(name) != nil {
					replay = replayLibrary
				}
				for try := 1; ; try++ {
					status, out := replay(t, name, script)
					if breaks == "" && status == cli.StatusOK || breaks != "" && status == cli.StatusFailed && strings.Contains(out, "^^ "+breaks) {
						break
					}
					if try == tries {
						t.Fatalf("replayed %d times: exit status %d (breaks %q)\n%s", tries, status, breaks, out)
					}
				}
			})
		}
	}
	if n := strings.Count(page, "\n```wire"); n != count {
		t.Errorf("%d transcripts, %d of them in findings", n, count)
	}
}

// replayServer plays a transcript against a new server.
func replayServer(t *testing.T, name, script string) (status int, out string) {
	peers.Need(t, name)
	suite, profile := profileOf(t, name)
	var b bytes.Buffer
	status = run(t.Context(), []string{"play", "-", "--protocol", suite.Protocol.Name, "--exec", profile.Exec}, strings.NewReader(script), &b, &b)
	return status, b.String()
}

// profileOf returns the profile of a peer, and the suite of its protocol.
func profileOf(t *testing.T, peer string) (*conform.Suite, *conform.Profile) {
	t.Helper()
	for _, e := range catalog.All() {
		if !slices.Contains(conform.Profiles(e.Protocol), peer) {
			continue
		}
		suite := mutanttest.Load(t, e.Protocol)
		p, err := conform.LoadProfile(peer, suite)
		if err != nil {
			t.Fatal(err)
		}
		return suite, p
	}
	t.Fatalf("no protocol has a profile of %s", peer)
	return nil, nil
}

// replayLibrary plays the server of a transcript. The driver of the library runs the tasks in the comments of the
// transcript, and its answers must begin with those in the comments.
func replayLibrary(t *testing.T, name, script string) (status int, out string) {
	d := examples.Named(name)
	program := d.Prepare(t, "../../examples")
	var tasks, want []string
	for line := range strings.Lines(script) {
		if task, ok := strings.CutPrefix(line, "# task: "); ok {
			tasks = append(tasks, task)
		}
		if answer, ok := strings.CutPrefix(line, "# answer: "); ok {
			want = append(want, strings.TrimSuffix(answer, "\n"))
		}
	}
	if len(tasks) == 0 {
		t.Fatal("the transcript has no task for the driver")
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	complaints, w := io.Pipe()
	var played bytes.Buffer
	done := make(chan int, 1)
	go func() {
		status := run(ctx, []string{"play", "-", "--protocol", d.Protocol, "--listen", "127.0.0.1:0", "--timeout", "20s"}, strings.NewReader(script), &played, w)
		w.Close()
		done <- status
	}()
	lines := bufio.NewReader(complaints)
	first, err := lines.ReadString('\n') // names the address on which play listens
	addr := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(first)
	if addr == "" {
		t.Fatalf("play says %q, %v", first, err)
	}
	var answers bytes.Buffer
	left := make(chan error, 1)
	go func() { left <- program(ctx, addr, strings.NewReader(strings.Join(tasks, "")), &answers) }()
	rest, _ := io.ReadAll(lines)
	status = <-done
	if strings.Contains(script, "# answer never\n") {
		select {
		case err = <-left:
			t.Errorf("the driver ended, and is known to hang: %v", err)
			left <- err
		case <-time.After(2 * time.Second):
		}
	}
	if len(want) == 0 {
		cancel() // the driver may never end by itself
	}
	err = <-left
	out = fmt.Sprintf("%s%s%sanswers:\n%s%v", played.Bytes(), first, rest, answers.Bytes(), err)
	got := strings.Split(answers.String(), "\n")
	for i, a := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], a) {
			t.Errorf("the answer to task %d does not begin with %s", i+1, a)
			status = cli.StatusFailed
		}
	}
	return status, out
}
