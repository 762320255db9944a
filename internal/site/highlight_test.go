package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"jobwire/internal/peers"
)

const root = "../.."

// TestScopes tests the scopes of each construct of the notation.
func TestScopes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`# text`:                              `comment[# text]`,
		`@protocol beanstalk # x`:             `keyword[@protocol] string[beanstalk] comment[# x]`,
		`@about The "server" {n} # 1`:         `keyword[@about] string[ The "server" ] variable[{n}] string[ # 1]`,
		`@rules gearman.echo.same-data a.b`:   `keyword[@rules] entity[gearman.echo.same-data] entity[a.b]`,
		`@case echo.sizes`:                    `keyword[@case] entity[ echo.sizes]`,
		`@for n in bounds(0,200) 1..9 e=""`:   `keyword[@for] variable[n] keyword[in] support[bounds] punctuation[(] string[0,200] punctuation[)] constant[1..9] variable[e] keyword[=] string[""]`,
		`@setup submit job unique="" more...`: `keyword[@setup] entity[submit] variable[job] variable[unique] keyword[=] string[""] variable[more] keyword[...]`,
		`each i in 1..{n}:`:                   `keyword[each] variable[i] keyword[in] constant[1] keyword[..] variable[{n}] keyword[:]`,
		`  measure put at {n}00:`:             `keyword[measure] variable[put] keyword[at] variable[{n}] constant[00] keyword[:]`,
		`Job Server -> Client 2`:              `entity[Job Server] keyword[->] entity[Client 2]`,
		`Client {i} -> Job Server: noop`:      `entity[Client ] variable[{i}] keyword[->] entity[Job Server] punctuation[:] entity[noop]`,
		`A -> B: ECHO_REQ "a\n\x00"*10 $x`:    `entity[A] keyword[->] entity[B] punctuation[:] entity[ECHO_REQ] string["a] constant[\n\x00] string["] constant[*10] variable[$x]`,
		`A -> B: setup submit $j f unique=u`:  `entity[A] keyword[->] entity[B] punctuation[:] storage[setup] entity[submit] variable[$j] string[f] variable[unique] keyword[=] string[u]`,
		`A -> B: unchecked PUT $now+2 7 ...`:  `entity[A] keyword[->] entity[B] punctuation[:] storage[unchecked] entity[PUT] variable[$now+2] constant[7] constant[...]`,
		`A -> B: raw 00 "REQ" ff within 2s`:   `entity[A] keyword[->] entity[B] punctuation[:] keyword[raw] constant[00] string["REQ"] constant[ff] keyword[within] constant[2s]`,
		`A -> B: nothing for 100ms`:           `entity[A] keyword[->] entity[B] punctuation[:] keyword[nothing] keyword[for] constant[100ms]`,
		`A -> B: half-closes`:                 `entity[A] keyword[->] entity[B] punctuation[:] keyword[half-closes]`,
		`A -> B: OK * after 900ms of put past *`: `entity[A] keyword[->] entity[B] punctuation[:] entity[OK] constant[*] ` +
			`keyword[after] constant[900ms] keyword[of] entity[put] keyword[past] constant[*]`,
		`  or non-strict nothing for 1s`:    `keyword[or] storage[non-strict] keyword[nothing] keyword[for] constant[1s]`,
		`  or ERROR * *version`:             `keyword[or] entity[ERROR] constant[*] constant[*version]`,
		`00 52 45 51      \0REQ    (Magic)`: `constant[00 52 45 51] constant[\0] string[REQ] entity[(Magic)]`,
		`00 00 00 04      4        (A: B)`:  `constant[00 00 00 04] string[4] entity[(A: B)]`,
		`"put 0\r\n"      (put: Priority)`:  `string["put 0] constant[\r\n] string["] entity[(put: Priority)]`,
		`   ^^ differs: byte 12`:            `invalid[   ^^ differs: byte 12]`,
	} {
		var got []string
		g := load(t)
		for _, s := range g.line(line) {
			kind, _, _ := strings.Cut(s.scope, ".")
			if kind != "source" {
				got = append(got, kind+"["+line[s.from:s.to]+"]")
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", line, got, want)
		}
	}
}

func load(t *testing.T) *grammar {
	t.Helper()
	g, err := readGrammar(filepath.Join(root, grammarFile))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestEditorsAgree tests that editors find the same scopes as the site in all transcripts of the repository, and that each
// word has a scope.
func TestEditorsAgree(t *testing.T) {
	t.Parallel()
	node, modules := peers.Need(t, "node"), peers.NodeModules(t, "../../tools/node", "vscode-textmate")
	var files []string
	for _, folder := range []string{"conform/cases", "corpus", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "node_modules" {
				return fs.SkipDir
			}
			if strings.HasSuffix(name, ".wire") {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{filepath.Join(filepath.Dir(modules), "scopes.js"), filepath.Join(root, grammarFile)}, files...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all [][][][3]any
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	g, lines := load(t), 0
	for i, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for k, line := range strings.Split(string(src), "\n") {
			lines++
			var theirs []span
			for _, tok := range all[i][k] {
				theirs = add(theirs, int(tok[0].(float64)), int(tok[1].(float64)), tok[2].(string))
			}
			var ours []span
			for _, s := range g.line(line) {
				units := func(n int) int { return len(utf16.Encode([]rune(line[:n]))) }
				ours = add(ours, units(s.from), units(s.to), s.scope)
				if s.scope == "source.wire" && strings.TrimSpace(line[s.from:s.to]) != "" && !prose(line) {
					t.Errorf("%s:%d: %q has no scope in %s", file, k+1, line[s.from:s.to], line)
				}
			}
			if !slices.Equal(ours, theirs) {
				t.Errorf("%s:%d: %s\neditors  %v\nthe site %v", file, k+1, line, theirs, ours)
			}
		}
	}
	if len(files) < 50 || lines < 10000 {
		t.Errorf("only %d files with %d lines", len(files), lines)
	}
}

// prose reports whether a line is text between the messages of a transcript in byte form.
func prose(line string) bool {
	return !strings.Contains(line, "->") && !strings.HasPrefix(line, "@")
}
