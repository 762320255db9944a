//go:build unix

package conform_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/conform/report"
	"jobwire/conform/selftest"
	mutants "jobwire/internal/mutant"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/internal/verdict"
	"jobwire/play"
	"jobwire/refserver"
	gearmanserver "jobwire/refserver/gearman"
)

// echoCase is a case about a client with the task to send a text in an echo request, to print the reply, and to disconnect.
const echoCase = `
@case client.echo
@about A client has a text echoed.
@section Echo
@rules gearman.echo.same-data
@program Client
@task echo $text
@answer echoed $text

Client -> Job Server: ECHO_REQ $text
Job Server -> Client: ECHO_RES $text
Client -> Job Server: closes
`

// echoer returns a program that calls do for each task.
func echoer(do func(addr string, words []string) (answer string)) conform.Program {
	return func(_ context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		for lines := bufio.NewScanner(tasks); lines.Scan(); {
			words, err := transcript.ParseWords(lines.Text())
			if err != nil {
				return err
			}
			fmt.Fprintln(answers, do(addr, words))
		}
		return nil
	}
}

// say sends each packet on a connection of its own and reads a reply to each.
func say(addr string, packets ...string) string {
	for _, p := range packets {
		c, err := new(transport.Dialer).Dial(context.Background(), addr)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		fmt.Fprintf(c, "\x00REQ\x00\x00\x00\x10\x00\x00\x00%c%s", len(p), p)
		io.ReadFull(c, make([]byte, 12+len(p)))
	}
	return "echoed " + strings.Join(packets, " ")
}

// TestPrograms tests that a case about a client passes only if the client sends the expected messages, prints the
// expected answer and exits, and that the note of a failure says what was wrong.
func TestPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		program conform.Program
		verdict verdict.Verdict
		note    string // a part of the note
	}{
		"sends the text": {
			echoer(func(addr string, w []string) string { return say(addr, w[1]) }), verdict.Passed, ""},
		"sends another text": {
			echoer(func(addr string, w []string) string { say(addr, "another"); return "echoed " + w[1] }), verdict.Failed, "Data: expected"},
		"sends two messages": {
			echoer(func(addr string, w []string) string { say(addr, w[1], w[1]); return "echoed " + w[1] }), verdict.Failed, "got ECHO_REQ"},
		"prints another answer": {
			echoer(func(addr string, w []string) string { say(addr, w[1]); return "echoed nothing" }), verdict.Failed, `expected the answer "echoed $text", got "echoed nothing"`},
		"never connects": {
			echoer(func(string, []string) string { return "echoed" }), verdict.Failed, "got nothing within"},
		"does not support the task": {
			echoer(func(string, []string) string { return "error unsupported" }), verdict.Skipped, `does not support the task "echo `},
		"ends at once": {
			func(context.Context, string, io.Reader, io.Writer) error { return io.ErrUnexpectedEOF }, verdict.Failed, "the program under test: unexpected EOF"},
		"does not end": {
			func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
				line, _ := bufio.NewReader(tasks).ReadString('\n')
				fmt.Fprintln(answers, say(addr, strings.Fields(line)[1]))
				<-ctx.Done()
				return nil
			}, verdict.Failed, "did not exit after its last task"},
		"breaks a rule": {
			echoer(func(addr string, w []string) string {
				c, err := new(transport.Dialer).Dial(context.Background(), addr)
				if err != nil {
					return err.Error()
				}
				defer c.Close()
				io.WriteString(c, "\x00REX")
				io.Copy(io.Discard, c)
				return ""
			}), verdict.Failed, "gearman."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := conform.Runner{Timeout: 2 * time.Second, Segments: []play.Segmentation{play.Plain, play.Bytewise, play.Coalesced},
				Programs: map[string]conform.Program{"Client": c.program}}
			res := run(t, r, load(t, echoCase))[0]
			if res.Verdict != c.verdict || !strings.Contains(res.Note, c.note) {
				t.Errorf("%s: %q; want %s, %q\n%s", res.Verdict, res.Note, c.verdict, c.note, report.Result(res))
			}
		})
	}
}

// TestWithoutProgramItsCasesAreSkipped tests that a case about a client is skipped if no client is given, and that
// selecting the cases about a role that has none is an error.
func TestWithoutProgramItsCasesAreSkipped(t *testing.T) {
	s := load(t, echoCase)
	if res := run(t, conform.Runner{}, s)[0]; res.Verdict != verdict.Skipped {
		t.Errorf("%s: %s", res.Verdict, res.Note)
	}
	if _, err := s.About("Worker"); err == nil {
		t.Error("a selection of cases about workers is not refused, though there are none")
	}
}

// TestMain makes the test binary a program under test if JOBWIRE_TEST_ECHO is set.
func TestMain(m *testing.M) {
	if addr := os.Getenv("JOBWIRE_TEST_ECHO"); addr != "" {
		program := echoer(func(_ string, w []string) string {
			if w[1] == "fail" {
				fmt.Fprintln(os.Stderr, "it cannot")
				os.Exit(3)
			}
			return say(addr, w[1])
		})
		if err := program(context.Background(), addr, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestProgramByCommand tests a client that is a command, in place of a function: it passes if it performs its task, and a
// failure shows what it wrote to standard error. The command is this test binary, which TestMain makes a client. It
// performs the task "echo TEXT", but for "echo fail" it writes "it cannot" to standard error and ends.
func TestProgramByCommand(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := conform.Command("env JOBWIRE_TEST_ECHO={addr} " + self)
	if err != nil {
		t.Fatal(err)
	}
	start := func(ctx context.Context) (target.Target, error) { // over TCP, because the program is another process
		server := refserver.New(gearmanserver.New(gearmanserver.Options{}), refserver.Options{Protocol: gearman.Protocol})
		return target.Func(ctx, "server", server.Serve)
	}
	for task, want := range map[string]verdict.Verdict{"echo $text": verdict.Passed, "echo fail": verdict.Failed} {
		src := strings.Replace(echoCase, "@task echo $text", "@task "+task, 1)
		r := conform.Runner{Start: start, Programs: map[string]conform.Program{"Client": program}}
		res := r.Run(t.Context(), load(t, src), nil)[0]
		if res.Verdict != want {
			t.Errorf("%s: %s, want %s", res.Verdict, res.Note, want)
		}
		if want == verdict.Failed && !strings.Contains(res.Note, "it cannot") {
			t.Errorf("%q does not say what the program wrote to standard error", res.Note)
		}
	}
}

// TestInvalidProgramsAreRefused tests that the command of a client must be one that can be started with an address, and
// that mistakes in the lines @program, @task and @answer of a case are errors.
func TestInvalidProgramsAreRefused(t *testing.T) {
	for _, line := range []string{"", "true", "/does/not/exist {addr}", "true | cat {addr}"} {
		if _, err := conform.Command(line); err == nil {
			t.Errorf("the command %q is taken", line)
		}
	}
	for change, want := range map[string]string{
		"@program Client\n":       "need a line @program",
		"@task echo $text\n":      "needs at least one line @task",
		"@program Client=Cook\n":  "expected Client, Worker, Admin",
		"@task echo $text=@task":  "@task is empty",
		"echo $text=echo *":       "words and $names",
		"@answer echoed $text=\"": "a.wire:",
	} {
		from, to, _ := strings.Cut(change, "=")
		if to == "\"" {
			to = `@answer "echoed`
		} else if to != "" && strings.HasPrefix(from, "@program") {
			to = "@program " + to
		}
		_, err := conform.LoadFS(gearman.Protocol, fstest.MapFS{"a.wire": {Data: []byte(strings.Replace(echoCase, from, to, 1))}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", change, err, want)
		}
	}
}

// TestSelfTestWithFaultyProgram tests that a self-test can run a mutant that is a client, and that a mutant of the
// server does not fail a case about a client.
func TestSelfTestWithFaultyProgram(t *testing.T) {
	s := load(t, echoCase)
	baseline := selftest.Baseline{Start: reference, Programs: map[string]conform.Program{
		"Client": echoer(func(addr string, w []string) string { return say(addr, w[1]) })}}
	r := selftest.Run(t.Context(), s, baseline, []mutants.Mutant{
		{Name: "mute", KilledBy: []string{"gearman.client.echo"}, Role: "Client", Program: echoer(func(string, []string) string { return "" })},
		mutant("about-the-server", "gearman.client.echo", "drop ECHO_REQ"),
	}, selftest.Options{Bubble: func(do func()) { synctest.Test(t, func(*testing.T) { do() }) }}, nil)
	if len(r.Failed) > 0 || !r.Mutants[0].Exact() || len(r.Mutants[1].Survivors) != 1 {
		t.Errorf("%+v", r)
	}
}

// TestChildProcessesEndWithTheProgram tests that a background process that a shell has started ends together with the
// shell.
func TestChildProcessesEndWithTheProgram(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := conform.Command("sh -c 'exec 3>" + fifo + "; sleep 20 >/dev/null 2>&1 & : {addr}'")
	if err != nil {
		t.Fatal(err)
	}
	open, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if err := program(t.Context(), "127.0.0.1:1", strings.NewReader(""), io.Discard); err != nil {
		t.Fatal(err)
	}
	open.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, open); err != nil {
		t.Errorf("the process is still there: %v", err)
	}
}

// TestSlowStart tests a program that connects after the time limit of its first step.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	r := conform.Runner{Timeout: timeout, Programs: map[string]conform.Program{
		"Client": echoer(func(addr string, w []string) string {
			<-time.After(2 * timeout)
			return say(addr, w[1])
		})}}
	if res := run(t, r, load(t, echoCase))[0]; res.Verdict != verdict.Passed {
		t.Errorf("%s: %s", res.Verdict, res.Note)
	}
}
