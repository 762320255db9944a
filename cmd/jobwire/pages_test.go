package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jobwire/cmd/internal/cli"
	"jobwire/internal/peers"
)

// session is a fenced block of a page: commands after "$ " with their output, or a
// file that the reader saves.
type session struct {
	line  int // line number of its first line in the page
	peers []string
	steps []typed

	file, text string
}

type typed struct{ command, output string }

var fences = regexp.MustCompile("(?ms)^```(console|wire|yaml|sh)([a-z./ -]*)\n(.*?)^```$")

// sessions returns the blocks of a page of the kind "console", and the files in blocks of the kinds "wire" and "yaml" that
// have a name.
func sessions(page string) (all []session) {
	for _, m := range fences.FindAllStringSubmatchIndex(page, -1) {
		s := session{line: 2 + strings.Count(page[:m[0]], "\n")}
		switch kind, words := page[m[2]:m[3]], page[m[4]:m[5]]; kind {
		case "sh":
			continue
		case "wire", "yaml":
			if words == "" {
				continue
			}
			s.file, s.text = strings.TrimSpace(words), page[m[6]:m[7]]
			all = append(all, s)
			continue
		default:
			s.peers = strings.Fields(words)
		}
		for line := range strings.Lines(page[m[6]:m[7]]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				s.steps = append(s.steps, typed{command: command})
			} else if n := len(s.steps); n > 0 {
				s.steps[n-1].output += line
			}
		}
		all = append(all, s)
	}
	return all
}

// pagesWithCommands returns the files of README.md and of the pages in docs that show commands with their output.
func pagesWithCommands(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../docs/tasks/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatalf("pages %v, %v", pages, err)
	}
	for _, name := range []string{"concepts", "exit-status", "faq", "json", "notation"} {
		pages = append(pages, "../../docs/"+name+".md")
	}
	return append(pages, "../../README.md")
}

// TestPagesShowRealOutput runs the commands in the "console" blocks of README.md and docs, and compares their output with the
// page. It runs all commands of a page in one folder, in order. Numbers may differ; a line "..." matches any number
// of lines, and "..." within a line matches any text. With -short, it leaves out the two pages that run a whole suite and
// the fuzzer.
func TestPagesShowRealOutput(t *testing.T) {
	for _, name := range pagesWithCommands(t) {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".md"), func(t *testing.T) {
			if strings.HasSuffix(name, "/README.md") || strings.HasSuffix(name, "/find-a-crash.md") {
				skipIfShort(t)
			}
			t.Parallel()
			if len(sessions(string(page))) == 0 {
				t.Fatal("the page has no session")
			}
			dir := workingCopy(t)
			for _, s := range sessions(string(page)) {
				t.Run(fmt.Sprintf("line %d", s.line), func(t *testing.T) {
					for _, name := range s.peers {
						peers.Need(t, name)
					}
					s.check(t, dir)
				})
			}
		})
	}
}

// workingCopy returns a folder with those parts of a working copy of jobwire that the pages use.
func workingCopy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "corpus"), os.DirFS(corpusDir(t))); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// check saves the file of a session, or runs its commands in dir and compares their output with the page.
func (s *session) check(t *testing.T, dir string) {
	if s.file != "" {
		file := filepath.Join(dir, s.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(s.text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	status := 0
	for _, step := range s.steps {
		// The shell of a reader keeps the exit status of the previous command in $?.
		cmd := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("(exit %d)\n%s", status, step.command))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		if status = cmd.ProcessState.ExitCode(); status >= cli.StatusUsage {
			t.Fatalf("$ %sexit status %d\n%s", step.command, status, out)
		}
		if !shownAs(step.output).MatchString(tidy(string(out))) {
			t.Fatalf("$ %sshows\n%s\nand not\n%s", step.command, out, step.output)
		}
	}
}

// tidy removes empty lines and makes each run of white space one space, because these differences do not matter.
func tidy(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			b.WriteString(strings.Join(words, " ") + "\n")
		}
	}
	return b.String()
}

// number matches a number, which may have a unit, and a duration such as 1m0.7s.
const number = `(?:(?:[0-9]+h)?[0-9]+m[0-9.]+s\b|(?:[0-9]+(?:[.,][0-9]+)*(?: ?(?:ns|us|µs|ms|s|m)\b)*)+)`

var (
	handle  = regexp.MustCompile(`H:[a-z]+:[0-9]+`)
	figure  = regexp.MustCompile(number)
	invents = regexp.MustCompile(`\b(fn-)[a-z0-9]+|\b(gearman-[a-z-]+-|law-)[0-9a-f]{8}\b`)
)

// shownAs returns a pattern that matches the output shown in a page.
func shownAs(output string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	for line := range strings.Lines(tidy(output)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "..." {
			b.WriteString(`(?:.*\n)*?`)
			continue
		}
		b.WriteString(loosely(line) + `\n`)
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// loosely returns a pattern for a line, which allows any number, handle and generated name, and any text for "...".
func loosely(line string) string {
	for _, wild := range []struct {
		in      *regexp.Regexp
		pattern string
	}{
		{regexp.MustCompile(`\.\.\.`), `.*`},
		{handle, `H:\S+:[0-9]+`},
		{invents, `[a-z0-9-]+`},
		{figure, number},
	} {
		if at := wild.in.FindStringIndex(line); at != nil {
			return loosely(line[:at[0]]) + wild.pattern + loosely(line[at[1]:])
		}
	}
	return regexp.QuoteMeta(line)
}

// TestPageComparisonFindsDifferences tests that the comparison of a documentation page with real output ignores
// measured values, names and omitted lines, and finds all other differences.
func TestPageComparisonFindsDifferences(t *testing.T) {
	tests := []struct {
		page, output string
		same         bool
	}{
		{"7 passed in 0.4 s", "7 passed in 1.2 s", true},
		{"p99 5.87 ms", "p99   873 us", true},
		{"1 finding in 7.6s: 3", "1 finding in 1m0.7s: 14", true},
		{"1 finding in 7.6s: 3", "1 finding in 1m: 14", true},
		{"7 passed", "7 failed", false},
		{"a\n...\nd", "a\nb\nc\nd", true},
		{"a\n...\nd", "a\nd", true},
		{"a\n...\nd", "a\nd\ne", false},
		{"a ... c", "a b c", true},
		{"a", "", false},
		{"", "a", false},
		{"JOB_CREATED H:lap:1", "JOB_CREATED H:a-host:12", true},
		{"WORK_COMPLETE", "WORK_FAIL", false},
		{"findings/gearman-law-210bcc3d.wire", "findings/gearman-law-0badcafe.wire", true},
	}
	for _, tt := range tests {
		if got := shownAs(tt.page).MatchString(tidy(tt.output + "\n")); got != tt.same {
			t.Errorf("page %q, output %q: the same %v, want %v", tt.page, tt.output, got, tt.same)
		}
	}
}

// TestCommandsInDocsAreRight checks the flags of every jobwire command in README.md and the pages, also of those that take
// too long to run in a test.
func TestCommandsInDocsAreRight(t *testing.T) {
	t.Parallel()
	shown := regexp.MustCompile(`(?m)^(?:    )?(?:\$ )?((?:[a-z]+ [^|\n]*\| *)?jobwire .*)$`)
	code := regexp.MustCompile("(?ms)^```(?:console|sh)[a-z -]*\n.*?^```$|(?:^    [^\n]*\n)+")
	for _, name := range append(pagesWithCommands(t), "../../examples/README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, block := range code.FindAllString(string(text), -1) {
			for _, m := range shown.FindAllStringSubmatch(block, -1) {
				n++
				checkCommands(t, filepath.Base(name), m[1])
			}
		}
		if n == 0 {
			t.Errorf("%s: no command was found", name)
		}
	}
}

// checkCommands parses the arguments of every jobwire in a shell line. The shell expands them, and finds no other
// program.
func checkCommands(t *testing.T, where, line string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "cases"), 0o777); err != nil { // earlier commands of a page create it
		t.Fatal(err)
	}
	const end = "end of the command"
	calls := filepath.Join(dir, "calls")
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c",
		`jobwire() { printf '%s\0' "$@" "`+end+`" >>"$CALLS"; }`+"\n"+line+"\nwait")
	cmd.Dir, cmd.Env = dir, []string{"CALLS=" + calls, "PATH=" + dir}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	called, err := os.ReadFile(calls)
	if err != nil {
		t.Errorf("%s: %s: no jobwire was run: %s", where, line, out)
	}
	for call := range strings.SplitSeq(strings.TrimSuffix(string(called), "\x00"+end+"\x00"), "\x00"+end+"\x00") {
		var stderr strings.Builder
		args := append(strings.Split(call, "\x00"), "--help")
		if status := run(t.Context(), args, strings.NewReader(""), io.Discard, &stderr); status != cli.StatusOK || stderr.Len() > 0 {
			t.Errorf("%s: %s: status %d: %s", where, line, status, stderr.String())
		}
	}
}

// TestLinksOfPages checks that each link between the pages of the repository leads to a file, and each anchor to a
// heading. docs/README.md must list all pages in docs.
func TestLinksOfPages(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, glob := range []string{"../../*.md", "../../docs/*.md", "../../docs/*/*.md", "../../examples/README.md", "../../deploy/README.md"} {
		found, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	anchors := map[string]map[string]bool{} // by page
	text := map[string]string{}
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text[page] = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(b), "")
		anchors[page] = anchorsOf(text[page])
	}
	listed := map[string]bool{}
	for _, page := range pages {
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text[page], -1) {
			if strings.Contains(m[1], ":") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			to := page
			if file != "" {
				to = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", page, err)
			}
			if anchor != "" && anchors[to] != nil && !anchors[to][anchor] {
				t.Errorf("%s: %s has no heading with the anchor #%s", page, to, anchor)
			}
			if page == filepath.Join("..", "..", "docs", "README.md") {
				listed[to] = true
			}
		}
	}
	for _, page := range pages {
		if dir := filepath.Join("..", "..", "docs"); strings.HasPrefix(page, dir) && filepath.Base(page) != "README.md" && !listed[page] {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}

// anchorsOf returns the anchors of a page: those of its headings, as GitHub makes them, and those in HTML.
func anchorsOf(page string) map[string]bool {
	all := map[string]bool{}
	for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		slug := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		all[strings.ReplaceAll(slug, " ", "-")] = true
	}
	for _, a := range regexp.MustCompile(`<a id="([^"]+)">`).FindAllStringSubmatch(page, -1) {
		all[a[1]] = true
	}
	return all
}
