package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// hostileText is text that controls a terminal, or changes the direction of text.
const hostileText = "\x1b]0;title\a\x1b[31m\x9b2J\u009b2J\x7f\u202edlrow\x00\b"

// controlIn returns the first character of a text that may control a terminal, or "".
func controlIn(text string) string {
	for i, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) || r == unicode.ReplacementChar && !strings.HasPrefix(text[i:], "\uFFFD") {
			return text[max(0, i-40):min(len(text), i+20)]
		}
	}
	return ""
}

// TestHostileOutput runs each command that starts a server with one that prints hostile text and exits: the text is
// shown without what controls a terminal.
func TestHostileOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "server")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ncat <<'END' >&2\nlast words "+hostileText+" end\nEND\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "a.wire")
	if err := os.WriteFile(script, []byte("Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"conform", "gearman", "--run", "gearman.echo.client"},
		{"play", script},
		{"bench", "run", "gearman", "--count", "1"},
		{"bench", "search", "gearman", "--slo", "p99<1s", "--duration", "1s"},
		{"bench", "run", "gearman", "--scenario", "crash", "--count", "1"},
		{"fuzz", "gearman", "--duration", "1s"},
		{"audit", "gearman"},
		{"audit", "stress", "gearman"},
	} {
		t.Run(strings.Join(args[:1], " "), func(t *testing.T) {
			t.Parallel()
			var out, e bytes.Buffer
			status := run(t.Context(), append(args, "--exec", program+" {port}"), strings.NewReader(""), &out, &e)
			text := out.String() + e.String()
			if status == exitOK || !strings.Contains(text, "last words \\x1b") {
				t.Errorf("expected a failure with the output of the program, got status %d:\n%s", status, text)
			}
			if c := controlIn(text); c != "" {
				t.Errorf("the output has a control character: %q", c)
			}
		})
	}
}
