package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/codec"
	"jobwire/codec/vectors"
	"jobwire/internal/transport"
	"jobwire/pcap"
	"jobwire/play"
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
		{"fuzz", "gearman", "--count", "1"},
		{"audit", "gearman"},
		{"audit", "stress", "gearman"},
	} {
		t.Run(strings.Join(args[:1], " "), func(t *testing.T) {
			t.Parallel()
			var out, e bytes.Buffer
			status := run(t.Context(), append(args, "--exec", program+" {port}"), strings.NewReader(""), &out, &e)
			text := out.String() + e.String()
			if status == cli.StatusOK || !strings.Contains(text, "last words \\x1b") {
				t.Errorf("expected a failure with the output of the program, got status %d:\n%s", status, text)
			}
			if c := controlIn(text); c != "" {
				t.Errorf("the output has a control character: %q", c)
			}
		})
	}
}

// hostilePeer changes what peers send: it replaces words, such as names, handles, versions, errors and parts of
// payloads, by characters that a terminal must not get. A word has the same replacement in the whole conversation, of
// the same length.
type hostilePeer struct {
	r     *rand.Rand
	words map[string][]byte
}

// forged is a character with which no line of jobwire begins, and which does not follow a tab.
const forged = "\u00a4"

var (
	hostilePieces = []string{"\x1b[7m", "\x1b]0;", "\x1b", "\a", "\b", "\r", "\v", "\x00", "\x7f", "\x9b2J",
		"\xff", "\u0085", "\u009b", "\u200f", "\u2028", "\u202e",
		"\u2066", "\ufeff", "\U000e0041", "\n" + forged, "\t" + forged, "\x1b[31m", "\\", "\"", "é"}
	ownColor    = regexp.MustCompile("\x1b\\[(0|2|1;31|3[1-6]|90)m")
	hostileWord = regexp.MustCompile("[A-Za-z_/.:-]{3,}")
)

func (h *hostilePeer) change(b []byte) []byte {
	b = slices.Clone(b)
	for _, at := range hostileWord.FindAllIndex(b, -1) {
		word := b[at[0]:at[1]]
		with, ok := h.words[string(word)]
		if !ok {
			if h.r.IntN(3) == 0 {
				for len(with) < len(word) {
					piece := hostilePieces[h.r.IntN(len(hostilePieces))]
					if len(with)+len(piece) > len(word) {
						piece = "x"
					}
					with = append(with, piece...)
				}
			}
			h.words[string(word)] = with
		}
		copy(word, with)
	}
	return b
}

// hostileCapture returns the messages of the corpus as a capture, with one connection for each client and worker.
func hostileCapture(t *testing.T, p *codec.Protocol, r *rand.Rand) []byte {
	t.Helper()
	corpus, err := vectors.Read(p)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := pcap.NewWriter(&out, p.DefaultPort)
	if err != nil {
		t.Fatal(err)
	}
	next := 0
	for _, v := range corpus {
		events, err := play.Encode(v.Script, time.Unix(1e9, 0), true)
		if err != nil {
			t.Fatal(err)
		}
		h, conns := hostilePeer{r, map[string][]byte{}}, map[string]int{}
		for _, ev := range events {
			if len(ev.Frame.Raw) == 0 {
				continue
			}
			conn, ok := conns[ev.Actor.Name]
			if !ok {
				conn, next = next, next+1
				conns[ev.Actor.Name] = conn
			}
			if err := w.Write(pcap.Event{Conn: conn, From: ev.From, Kind: pcap.Data, Data: h.change(ev.Frame.Raw)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// hostileServer starts a relay to a server in memory, which changes the replies, except on the first honest
// connections.
func hostileServer(t *testing.T, sys *catalog.Entry, honest uint64) string {
	t.Helper()
	to := embedded(t, sys).Addr()
	ln, err := transport.Listen(transport.Local(to), nil)
	if err != nil {
		t.Fatal(err)
	}
	var pumps sync.WaitGroup
	pumps.Go(func() {
		for accepted := uint64(0); ; accepted++ {
			n := accepted
			up, err := ln.Accept()
			if err != nil {
				return
			}
			down, err := new(transport.Dialer).Dial(context.Background(), to)
			if err != nil {
				up.Close()
				continue
			}
			if n > honest && honest > 0 {
				n = honest // so that the same requests have the same replies
			}
			h := hostilePeer{rand.New(rand.NewPCG(1, n)), map[string][]byte{}}
			change := h.change
			if n < honest {
				change = slices.Clip[[]byte]
			}
			pump := func(to, from net.Conn, change func([]byte) []byte) {
				defer to.Close()
				defer from.Close()
				b := make([]byte, 1<<16)
				for {
					n, err := from.Read(b)
					<-time.After(time.Millisecond) // in virtual time, so that latencies are not 0
					if _, werr := to.Write(change(b[:n])); err != nil || werr != nil {
						return
					}
				}
			}
			pumps.Go(func() { pump(down, up, slices.Clip[[]byte]) })
			pumps.Go(func() { pump(up, down, change) })
		}
	})
	t.Cleanup(func() {
		ln.Close()
		pumps.Wait()
	})
	return transport.Name(ln)
}

// checkHostileClients runs a command that listens at ADDR, in memory (not in virtual time: serve waits for signals),
// and sends it the messages that clients and workers of the corpus send, changed.
func checkHostileClients(t *testing.T, p *codec.Protocol, command string) {
	t.Helper()
	corpus, err := vectors.Read(p)
	if err != nil {
		t.Fatal(err)
	}
	word, _, _ := strings.Cut(command, " ")
	addr, dir := transport.Memory+"hostile-clients-of-"+word+"-"+p.Name, t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	var serving sync.WaitGroup
	serving.Go(func() {
		checkHostile(ctx, t, strings.Fields(strings.NewReplacer("ADDR", addr, "DIR", dir).Replace(command)), nil, dir)
	})
	defer serving.Wait()
	defer cancel()
	var clients sync.WaitGroup
	defer clients.Wait()
	h := hostilePeer{rand.New(rand.NewPCG(1, 1)), map[string][]byte{}}
	for _, v := range corpus {
		events, err := play.Encode(v.Script, time.Unix(1e9, 0), true)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := new(transport.Dialer).Dial(ctx, addr)
		for ; err != nil; conn, err = new(transport.Dialer).Dial(ctx, addr) { // it does not listen yet
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
		clients.Go(func() {
			io.Copy(io.Discard, conn)
			conn.Close()
		})
		for _, ev := range events {
			if ev.From == codec.Peer {
				conn.Write(h.change(ev.Frame.Raw))
			}
		}
		transport.CloseWrite(conn)
	}
}

// checkHostile runs a command and checks what it prints, and the names and contents of the files that it writes to dir.
func checkHostile(ctx context.Context, t *testing.T, args []string, stdin []byte, dir string) {
	t.Helper()
	check := func(what, text string, page bool) {
		t.Helper()
		if c := controlIn(text); c != "" {
			t.Errorf("%q: %s has a control character: %q", args, what, c)
		}
		for _, end := range []string{"\n", "\t"} {
			if _, after, found := strings.Cut(text, end+forged); found && !page {
				before, _, _ := strings.Cut(text, end+forged)
				around := before[max(0, len(before)-80):] + end + forged + after[:min(len(after), 20)]
				t.Errorf("%q: %s has a line end or a tab of a peer: %q", args, what, around)
			}
		}
	}
	var out, e bytes.Buffer
	run(ctx, args, bytes.NewReader(stdin), &out, &e)
	check("standard output", ownColor.ReplaceAllString(out.String(), ""), false)
	check("standard error", e.String(), false)
	filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		check("a file name", name, false)
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if ext := filepath.Ext(name); ext != ".pcapng" {
			check("the file "+name, string(data), ext == ".html" || ext == ".xml")
		}
		return err
	})
	if err := os.WriteFile(filepath.Join(dir, "last"), out.Bytes(), 0o644); err != nil { // for the next command
		t.Fatal(err)
	}
}

// TestHostilePeers runs each command on captures and servers whose words are control characters, invalid bytes, and line
// ends and tabs that forge lines and columns. None of them is in what the command prints, and in the names and contents
// of its files.
func TestHostilePeers(t *testing.T) {
	t.Parallel()
	for n, sys := range catalog.All() {
		p := sys.Protocol
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			seeds := uint64(3)
			if testing.Short() {
				seeds = 1
			}
			for seed := range seeds {
				capture := hostileCapture(t, p, rand.New(rand.NewPCG(seed, 1)))
				for _, args := range []string{
					"decode - --color always", "decode - --annotate --color always", "decode - --hex --full --color always",
					"decode - --format json", "decode - --full --format json", "decode - --audit --color always",
					"decode summary - --html DIR/a.html", "decode summary - --format json", "decode jobs -", "decode jobs - --format json", "decode transcripts - --output DIR/wire"} {
					dir := t.TempDir()
					checkHostile(t.Context(), t, strings.Fields(strings.ReplaceAll(args, "DIR", dir)), capture, dir)
				}
			}
			checkHostileClients(t, p, "serve "+p.Name+" --listen ADDR --annotate --audit --color always")
			if p.Name == "gearman" || !testing.Short() {
				checkHostileClients(t, p, "audit "+p.Name+" --listen ADDR --addr "+hostileServer(t, sys, 0)+
					" --color always --hex --transcripts DIR/wire --pcap DIR/a.pcapng")
			}
			wire := "accept.wire"
			if p.Name == "danga" { // its accept.wire has an incomplete message
				wire = "best.wire"
			}
			for i, args := range []string{
				"conform P --addr ADDR --run *.s* --run *.c* --html DIR/a.html --pcap DIR/a.pcapng --color always -v",
				"conform P --addr ADDR --run *.p* --format json", "conform P --addr ADDR --run *.p* --format junit", "conform P --addr ADDR --run *.p* --format tap",
				"conform P --addr ADDR --run *.e* --format json ; conform matrix a=DIR/last b=DIR/last -o DIR/a.html",
				"bench run P --addr ADDR --count 50 --html DIR/a.html --output DIR/a.json --hlog DIR/a.hlog ; bench compare DIR/a.json DIR/a.json --html DIR/b.html",
				"bench search P --addr ADDR --slo p99<1s --duration 1s --max-in-flight 16 --html DIR/a.html",
				"play ../../corpus/P/WIRE --protocol P --addr ADDR --annotate --pcap DIR/a.pcapng --color always",
				"bench run P --addr ADDR --scenario chaos --count 50 --format json",
				"audit stress P plain --addr ADDR --transcripts DIR/wire --color always",
			} {
				if testing.Short() && (i+n)%2 > 0 { // each command with half of the protocols
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					dir := t.TempDir()
					addr := hostileServer(t, sys, 0)
					for _, command := range strings.Split(args, " ; ") {
						checkHostile(t.Context(), t, strings.Fields(strings.NewReplacer("WIRE", wire, "P", p.Name, "ADDR", addr, "DIR", dir).Replace(command)), nil, dir)
					}
				})
			}
		})
	}
}

// TestHostileFuzz runs fuzz on servers that change their replies as in TestHostilePeers, after it has found a probe. It
// finds faults, which it prints in all formats and saves. The short form runs it with one protocol.
func TestHostileFuzz(t *testing.T) {
	t.Parallel()
	formats := []string{"json", "text", "junit", "markdown", "sarif"}
	for i, sys := range catalog.All() {
		for k, format := range formats {
			if testing.Short() && i+k > 0 {
				continue
			}
			t.Run(sys.Protocol.Name+"/"+format, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					dir := t.TempDir()
					addr := hostileServer(t, sys, 4)
					names := strings.NewReplacer("P", sys.Protocol.Name, "ADDR", addr, "DIR", dir, "FORMAT", format)
					args := names.Replace(
						"fuzz P --addr ADDR --count 200 --duration 1m --seed 1 --minimize 1s --timeout 100ms -v " +
							"--findings DIR/f --state DIR/s --logs DIR/l --html DIR/a.html --format FORMAT")
					checkHostile(t.Context(), t, strings.Fields(args), nil, dir)
					if saved, err := os.ReadDir(filepath.Join(dir, "f")); err != nil || len(saved) < 4 {
						t.Errorf("expected findings, got %d files, %v", len(saved), err)
					}
				})
			})
		}
	}
}
