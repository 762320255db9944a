package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"jobwire/cmd/internal/cli"
)

// TestTextFiles reads each kind of text file with a byte order mark, which is skipped, and what is not a text: the
// error names the kind of file that was expected.
func TestTextFiles(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "cases"), 0o777); err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	redis := file("redis.wire", "@protocol gearmonkey\nClient -> Server: GET_COUNT x\n")
	example, profile := read("../../corpus/gearman/example.wire"), read("../../conform/profiles/gearman/embedded.yaml")
	saved, result := "a result that 'bench run --output' has saved", read("../../loadgen/format/testdata/passed.json")
	cases := "@case gearman.x.y\n@about x\n@rules gearman.echo.same-data\n\n" +
		"Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n"
	conformed := "a result of 'jobwire conform --format json'"
	readers := []struct {
		kind, name, text, command string // FILE, DIR and REDIS stand for names in the command
		expected                  string
	}{
		{"transcript", "f", example, "encode FILE --output DIR/out", "a transcript"},
		{"profile", "f", profile, "conform gearman --profile FILE --run gearman.echo.order", "a profile"},
		{"result", "f", result, "bench report FILE", saved},
		{"results to compare", "f", result, "bench compare FILE FILE", saved},
		{"baseline", "f", result, "bench run gearman --addr 127.0.0.1:1 --baseline FILE", saved},
		{"login file", "f", "secret\n", "play REDIS --login-file FILE --addr 127.0.0.1:1", "a login file"},
		{"key log", "f", "# no keys\n", "decode DIR/none --tls-keys FILE", "a TLS key log"},
		{"cases", "cases/f.wire", cases, "conform cases gearman --cases DIR/cases", "a file with cases"},
		{"results of conform", "f", "{}", "conform matrix FILE --output DIR/page.html", conformed},
		{"log of fuzz", "f", "{}", "fuzz replay gearman FILE --addr 127.0.0.1:1", "a log of fuzz"},
		{"certificates", "f", "none\n", "play REDIS --tls --tls-ca FILE --addr 127.0.0.1:1", "certificates in PEM format"},
	}
	for _, r := range readers {
		command := func(text string) (status int, errs string) {
			name := file(r.name, text)
			var args []string
			for _, word := range strings.Fields(strings.Replace(r.command, "REDIS", redis, 1)) {
				args = append(args, strings.Replace(strings.ReplaceAll(word, "FILE", name), "DIR", dir, 1))
			}
			var out, stderr bytes.Buffer
			status = run(t.Context(), args, strings.NewReader(""), &out, &stderr)
			first, _, _ := strings.Cut(stderr.String(), "\n")
			first, _, _ = strings.Cut(first, " messages in ") // a time follows
			return status, first
		}
		status, errs := command(r.text)
		if s, e := command("\xef\xbb\xbf" + r.text); s != status || e != errs {
			t.Errorf("%s with a byte order mark: status %d, %q; without: %d, %q", r.kind, s, e, status, errs)
		}
		for _, tt := range []struct{ text, want string }{
			{"\xff\xfea\x00b\x00", "the text is in UTF-16: save it as UTF-8"},
			{"\xfe\xff\x00a\x00b", "the text is in UTF-16: save it as UTF-8"},
			{"\x89PNG\r\n\x1a\n\x00\x00", "expected " + r.expected + ", got a file that begins with 89 50 4e 47 0d 0a 1a 0a"},
			{"\x7fELF\x02\x01\x01\x00\x00", "expected " + r.expected + ", got a file that begins with 7f 45 4c 46"},
		} {
			named := func(errs string) bool {
				return strings.Contains(errs, filepath.Join(dir, "f")) || strings.Contains(errs, "f.wire")
			}
			if status, errs := command(tt.text); status != cli.StatusUsage || !strings.Contains(errs, tt.want) || !named(errs) {
				t.Errorf("%s %q: status %d, %q; want %q", r.kind, tt.text, status, errs, tt.want)
			}
		}
	}
}

// TestNoCases tests that a folder or a file without cases is reported as such.
func TestNoCases(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.wire")
	if err := os.WriteFile(empty, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"conform", "gearman", "--cases", folder}, cli.StatusUsage,
			"--cases " + folder + ": found no .wire files with test cases of Gearman"},
		{[]string{"conform", "gearman", "--cases", empty}, cli.StatusUsage,
			"--cases " + empty + ": expected a folder of .wire files, got a file"},
		{[]string{"conform", "gearman", "--cases", dir}, cli.StatusUsage, "empty.wire:1:1: expected at least one message"},
		{[]string{"conform", "gearman", "--cases", dir + "/none"}, cli.StatusFailed, "--cases: "},
		{[]string{"play", folder}, cli.StatusUsage, folder + ": expected a transcript, got a folder"},
		{[]string{"play", empty}, cli.StatusUsage, empty + ":1:1: expected at least one message"},
		{[]string{"conform", "gearman", "--profile", folder}, cli.StatusUsage, folder + ": expected a profile, got a folder"},
		{[]string{"bench", "compare", folder, folder}, cli.StatusUsage, folder + ": the folder contains no .json files"},
	} {
		var out, errs bytes.Buffer
		status := run(t.Context(), tt.args, strings.NewReader(""), &out, &errs)
		if status != tt.status || !strings.Contains(errs.String(), tt.want) || out.Len() > 0 {
			t.Errorf("%q: status %d, %q; want %d, %q", tt.args, status, errs.String(), tt.status, tt.want)
		}
	}
}
