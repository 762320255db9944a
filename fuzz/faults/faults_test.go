package faults_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"jobwire/catalog"
	"jobwire/codec/transcript"
	"jobwire/fuzz/faults"
	"jobwire/internal/target"
	"jobwire/play"
)

// TestMain runs a faulty server if the test binary is called with the arguments "serve NAME PROTOCOL ADDR".
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "serve" {
		if err := serve(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func serve(name, protocol, addr string) error {
	f := faults.Faultless(protocol)
	if known := faults.Named(name); known != nil {
		f = *known
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return f.Serve(ctx, ln)
}

func start(t *testing.T, f faults.Fault) target.Target {
	t.Helper()
	server, err := target.Command{Name: f.Name, Args: []string{os.Args[0], "serve", f.Name, f.Protocol, "{addr}"}}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// triggers returns the transcripts that trigger the faults of a protocol, by the name of the fault.
func triggers(t *testing.T, protocol string) map[string]*transcript.Script {
	t.Helper()
	file := "testdata/" + protocol + ".wire"
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := catalog.Named(protocol)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := transcript.Parse(entry.Protocol, file, src)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*transcript.Script{}
	for _, s := range scripts {
		all[s.Value("case")] = s
	}
	return all
}

// Timeouts of a reply. A server without the fault gets the long one, because the machine may be busy.
const (
	longTimeout  = 10 * time.Second
	replyTimeout = time.Second
)

func perform(t *testing.T, server target.Target, s *transcript.Script, timeout time.Duration) *play.Failure {
	t.Helper()
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) { return target.Dial(ctx, server) }
	return play.Peers(t.Context(), s, dial, play.Options{Timeout: timeout}).Failure
}

// serverState is the state of a server after a transcript that triggers a fault.
type serverState struct {
	t       *testing.T
	server  target.Target
	trigger *transcript.Script
	probe   *transcript.Script
	within  time.Duration // time limit for the fault to appear
	failure *play.Failure // of the first run of the transcript
}

// failed reports whether the transcript failed and the server still runs.
func (s *serverState) failed() bool { return s.failure != nil && s.alive() }

// alive reports whether the server replies on a new connection.
func (s *serverState) alive() bool { return perform(s.t, s.server, s.probe, 2*s.within) == nil }

func (s *serverState) died(exit string) bool {
	err := target.Died(s.server)
	return err != nil && strings.Contains(err.Error(), exit)
}

// seen contains a function for each oracle that reports whether the fault has appeared.
var seen = map[string]func(s *serverState) bool{
	faults.Exit:   func(s *serverState) bool { return s.died("exit status") },
	faults.Signal: func(s *serverState) bool { return s.died("signal: ") },
	faults.Sanitizer: func(s *serverState) bool {
		report := regexp.MustCompile(`(?m)==ERROR: \w+Sanitizer:|^\S+: runtime error: `)
		return within(s.within/2, func() bool { return report.MatchString(s.server.Output()) })
	},
	faults.Hang: (*serverState).failed,
	faults.ServerHang: func(s *serverState) bool {
		return s.failure != nil && target.Died(s.server) == nil && !s.alive()
	},
	faults.Spin: func(s *serverState) bool {
		const busy = 300 * time.Millisecond // CPU time without requests
		before := cpu(s.t, s.server)
		return within(2*s.within, func() bool { return cpu(s.t, s.server)-before >= busy })
	},
	faults.Memory:       func(s *serverState) bool { return s.grows(memory, 15<<20) },
	faults.Descriptors:  func(s *serverState) bool { return s.grows(descriptors, 30) },
	faults.Framing:      (*serverState).failed,
	faults.Rule:         func(s *serverState) bool { return s.failed() && s.failure.Rule() != "" },
	faults.Disclosure:   (*serverState).failed,
	faults.Lost:         (*serverState).failed,
	faults.Wrong:        (*serverState).failed,
	faults.Stray:        (*serverState).failed,
	faults.Interference: (*serverState).failed,
}

// grows reports whether a figure grows by at least much during 100 more runs of the transcript and does not decrease
// afterwards.
func (s *serverState) grows(figure func(*testing.T, target.Target) int, much int) bool {
	before := figure(s.t, s.server)
	for range 100 {
		if f := perform(s.t, s.server, s.trigger, longTimeout); f != nil {
			s.t.Fatal(f)
		}
	}
	// The server may be slow to notice that connections have ended.
	return !within(200*time.Millisecond, func() bool { return figure(s.t, s.server)-before < much })
}

// within reports whether a condition becomes true within the duration.
func within(d time.Duration, is func() bool) bool {
	for end := time.Now().Add(d); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// The transcript of each fault makes the oracle of the fault report it. Without the fault, no oracle reports anything.
func TestFaults(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked at in /proc")
	}
	for _, f := range faults.All() {
		t.Run(f.Protocol+"/"+f.Name, func(t *testing.T) {
			t.Parallel()
			scripts := triggers(t, f.Protocol)
			look := func(served faults.Fault, timeout, within time.Duration) *serverState {
				s := &serverState{t: t, server: start(t, served), trigger: scripts[f.Name], probe: scripts["probe"], within: within}
				s.failure = perform(t, s.server, s.trigger, timeout)
				return s
			}
			sound := look(faults.Faultless(f.Protocol), longTimeout, replyTimeout)
			if sound.failure != nil {
				t.Errorf("without the fault: %v", sound.failure)
			}
			if seen[f.Oracle](sound) {
				t.Error("without the fault, it is seen all the same")
			}
			var faulty *serverState
			for _, within := range []time.Duration{replyTimeout, longTimeout} { // on a busy machine the fault may appear late
				if faulty = look(f, within, within); seen[f.Oracle](faulty) {
					return
				}
			}
			t.Errorf("the fault does not show; the transcript says: %v; the server says: %v %s", faulty.failure, faulty.server.Err(), faulty.server.Output())
		})
	}
}

// cpu returns how much CPU time the server has used.
func cpu(t *testing.T, server target.Target) time.Duration {
	stat := proc(t, server, "stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	var ticks int
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// memory returns the resident memory of the server, in bytes.
func memory(t *testing.T, server target.Target) int {
	n, err := strconv.Atoi(strings.Fields(proc(t, server, "statm"))[1])
	if err != nil {
		t.Fatal(err)
	}
	return n * os.Getpagesize()
}

func descriptors(t *testing.T, server target.Target) int {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", target.Pid(server)))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func proc(t *testing.T, server target.Target, file string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", target.Pid(server), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The list of faults is consistent: each fault has a unique name and a transcript of at most ten steps, and every oracle
// has at least two faults.
func TestTable(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	names, abouts, oracles, protocols := map[string]bool{}, map[string]bool{}, map[string]int{}, map[string]int{}
	for _, f := range faults.All() {
		switch {
		case !kebab.MatchString(f.Name) || names[f.Name]:
			t.Errorf("%q is no name, or stands twice", f.Name)
		case !strings.HasSuffix(f.About, ".") || abouts[f.About]:
			t.Errorf("%s: %q is no sentence, or stands twice", f.Name, f.About)
		case f.Edit == nil:
			t.Errorf("%s has no fault", f.Name)
		case seen[f.Oracle] == nil:
			t.Errorf("%s: %q is no oracle", f.Name, f.Oracle)
		}
		names[f.Name], abouts[f.About] = true, true
		oracles[f.Oracle]++
		protocols[f.Protocol]++
		if named := faults.Named(f.Name); named == nil || named.About != f.About {
			t.Errorf("%s is not found by its name", f.Name)
		}
		s := triggers(t, f.Protocol)[f.Name]
		if s == nil {
			t.Errorf("%s has no transcript", f.Name)
		} else if len(s.Steps) > 10 {
			t.Errorf("%s needs %d steps, and 10 are all that a fuzzer may need", f.Name, len(s.Steps))
		}
	}
	for oracle := range seen {
		if oracles[oracle] < 2 {
			t.Errorf("%d faults show by %s, want 2", oracles[oracle], oracle)
		}
	}
	for _, name := range catalog.Names() {
		if protocols[name] < 3 {
			t.Errorf("%s has %d faults, want 3", name, protocols[name])
		}
		for c := range triggers(t, name) {
			if c != "probe" && !names[c] {
				t.Errorf("%s: there is no fault %s", name, c)
			}
		}
	}
	if faults.Named("none") != nil {
		t.Error("there is a fault none")
	}
}
