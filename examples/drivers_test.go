package examples

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/audit"
	_ "jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/conform"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/play"
	beanstalkpeer "jobwire/refpeer/beanstalk"
	gearmanpeer "jobwire/refpeer/gearman"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	gearmanserver "jobwire/refserver/gearman"
)

// system is a protocol whose clients and workers are tested here.
type system struct {
	protocol *codec.Protocol
	embedded func() refserver.Machine
	server   string // the real server; see internal/peers
}

var systems = map[string]system{
	"gearman":   {gearman.Protocol, func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{}) }, "gearmand"},
	"beanstalk": {beanstalk.Protocol, func() refserver.Machine { return beanstalkserver.New(beanstalkserver.Options{}) }, "beanstalkd"},
}

// serve starts the embedded server.
func (s system) serve(ctx context.Context) (target.Target, error) {
	return target.Func(ctx, "embedded", func(ctx context.Context, ln net.Listener) error {
		return refserver.New(s.embedded(), refserver.Options{Protocol: s.protocol}).Serve(ctx, ln)
	})
}

// audited returns a function that starts the real server with a proxy that checks all connections.
func (s system) audited(t *testing.T, a *audit.Auditor) func(context.Context) (target.Target, error) {
	t.Helper()
	suite, err := conform.Load(s.protocol)
	if err != nil {
		t.Fatal(err)
	}
	profile, err := conform.LoadProfile(s.server, suite)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) (target.Target, error) {
		return target.Func(ctx, s.server+" behind a proxy", func(ctx context.Context, ln net.Listener) error {
			server, err := target.Exec(ctx, profile.Exec)
			if err != nil {
				return err
			}
			defer server.Stop()
			proxy := audit.Proxy{Auditor: a, Dial: func(ctx context.Context) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", server.Addr())
			}}
			return proxy.Serve(ctx, ln)
		})
	}
}

// driver is a driver in this directory.
type driver struct {
	name     string
	protocol string
	peer     string // the program that runs it; see internal/peers
	module   string // the npm module that it also needs
	command  string
	short    map[string]string // cases that its library fails, with the anchors of the findings in docs/findings.md
	whole    string            // anchor of the finding if the library cannot read messages byte by byte
	breaks   []codec.RuleID    // rules that a proxy sees it violate, sorted
	chance   map[string]string // as short, but the cases fail only with a certain timing of messages or segments
}

const nodeDriver = "node --no-deprecation node/%s.js {host} {port}"

var drivers = []driver{
	{"Perl", "gearman", "gearman-perl", "", "perl gearman-perl/driver.pl {addr}", map[string]string{
		"gearman.client.zero":           "perl-client-zero-workload",
		"gearman.worker.zero":           "perl-worker-empty-result",
		"gearman.worker.empty-workload": "perl-worker-empty-result",
		"gearman.worker.empty-result":   "perl-worker-empty-result",
		"gearman.worker.exception":      "perl-worker-exception-and-fail",
		"gearman.worker.ends-once":      "perl-worker-exception-and-fail",
		"gearman.worker.goes-on":        "perl-worker-exception-and-fail",
	}, "", []codec.RuleID{"gearman.args.missing", "gearman.work.final"}, nil},
	{"PHP", "gearman", "gearman-php", "", "php gearman-php/driver.php {host} {port}", map[string]string{
		"gearman.client.empty":               "php-empty-workload",
		"gearman.client.refused-then-served": "php-refused-task-waits",
	}, "", nil, nil},
	{"the gearman command", "gearman", "gearman", "", "bash gearman-cli/driver.sh {host} {port}", map[string]string{
		"gearman.worker.large": "gearman-command-large-workload",
	}, "", nil, nil},
	{"libgearman", "gearman", "libgearman", "", "{built} {host} {port}", map[string]string{
		"gearman.client.empty":               "php-empty-workload",
		"gearman.client.refused-then-served": "php-refused-task-waits",
	}, "", nil, nil},
	{"gearmanode", "gearman", "node", "gearmanode", fmt.Sprintf(nodeDriver, "gearmanode"), map[string]string{
		"gearman.client.refused-then-served": "gearmanode-error-shifts-handles",
		"gearman.worker.binary":              "gearmanode-binary-result",
	}, "gearmanode-short-segment", nil, nil},
	{"node-gearman", "gearman", "node", "node-gearman", fmt.Sprintf(nodeDriver, "node-gearman"), map[string]string{
		"gearman.client.background":          "node-gearman-background-nul",
		"gearman.client.status":              "node-gearman-background-nul",
		"gearman.client.background-handle":   "node-gearman-background-handle",
		"gearman.client.refused":             "node-gearman-error-ignored",
		"gearman.client.refused-then-served": "node-gearman-error-ignored",
	}, "", nil, nil},
	{"abraxas", "gearman", "node", "abraxas", fmt.Sprintf(nodeDriver, "abraxas"), map[string]string{
		"gearman.worker.exception": "abraxas-exception-and-fail",
		"gearman.worker.ends-once": "abraxas-exception-and-fail",
	}, "", []codec.RuleID{"gearman.work.final"}, map[string]string{
		"gearman.worker.goes-on": "abraxas-exception-and-fail",
	}},
	{"gearman for Node.js", "gearman", "node", "gearman", fmt.Sprintf(nodeDriver, "gearman"), map[string]string{
		"gearman.client.status":         "gearman-npm-status",
		"gearman.client.status-unknown": "gearman-npm-status",
		"gearman.worker.timeout":        "gearman-npm-timeout",
	}, "", []codec.RuleID{"gearman.args.surplus"}, nil},
	{"gearman-node", "gearman", "node", "gearman-node", fmt.Sprintf(nodeDriver, "gearman-node"), map[string]string{
		"gearman.client.refused-then-served": "gearman-node-error-shifts-handles",
	}, "", nil, nil},
	{"beaneater", "beanstalk", "beaneater", "", "ruby beaneater/driver.rb {addr}", nil, "", nil, nil},
	{"go-beanstalk", "beanstalk", "", "", "{built} {addr}", nil, "", nil, nil},
	{"Pheanstalk", "beanstalk", "pheanstalk", "", "php pheanstalk/driver.php {host} {port}", nil, "", nil, nil},
	{"node-beanstalk", "beanstalk", "node", "node-beanstalk", fmt.Sprintf(nodeDriver, "node-beanstalk"), nil, "", nil, map[string]string{
		"beanstalk.worker.empty": "node-beanstalk-empty-body",
	}},
	{"beanstalkd for Node.js", "beanstalk", "node", "beanstalkd", fmt.Sprintf(nodeDriver, "beanstalkd"), nil, "beanstalkd-npm-late-crlf", nil, nil},
	{"beanstalk_client", "beanstalk", "node", "beanstalk_client", fmt.Sprintf(nodeDriver, "beanstalk_client"), map[string]string{
		"beanstalk.client.put-text":  "beanstalk-client-characters",
		"beanstalk.client.put-empty": "beanstalk-client-empty-body",
		"beanstalk.client.peek":      "beanstalk-client-reply-body",
		"beanstalk.client.stats":     "beanstalk-client-reply-body",
		"beanstalk.worker.binary":    "beanstalk-client-characters",
	}, "", []codec.RuleID{"beanstalk.message.complete", "beanstalk.put.body-crlf"}, nil},
	{"qbean", "beanstalk", "node", "qbean", fmt.Sprintf(nodeDriver, "qbean"), map[string]string{
		"beanstalk.client.put-empty": "qbean-empty-body",
		"beanstalk.worker.binary":    "qbean-binary-body",
		"beanstalk.worker.empty":     "qbean-empty-body",
	}, "", []codec.RuleID{"beanstalk.message.complete"}, nil},
	{"fivebeans", "beanstalk", "node", "fivebeans", fmt.Sprintf(nodeDriver, "fivebeans"), nil, "", nil, nil},
	{"jackd", "beanstalk", "node", "jackd", fmt.Sprintf(nodeDriver, "jackd"), map[string]string{
		"beanstalk.client.put-binary": "jackd-buffer-as-json",
		"beanstalk.client.put-empty":  "jackd-empty-body",
	}, "", nil, nil},
	{"nodestalker", "beanstalk", "node", "nodestalker", fmt.Sprintf(nodeDriver, "nodestalker"), map[string]string{
		"beanstalk.worker.empty": "nodestalker-empty-body",
	}, "nodestalker-segment-is-reply", nil, nil},
}

// TestDrivers tests every library with the embedded server and with the real server. Each must fail as docs/findings.md
// says, and in no other way.
func TestDrivers(t *testing.T) {
	findings, err := os.ReadFile("../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			program := d.prepare(t)
			findingIDs := slices.Concat(slices.Collect(maps.Values(d.short)), slices.Collect(maps.Values(d.chance)))
			ways := []play.Segmentation{play.Plain, play.Bytewise}
			if d.whole != "" {
				ways, findingIDs = ways[:1], append(findingIDs, d.whole)
			}
			for _, id := range findingIDs {
				if !bytes.Contains(findings, []byte("\n<a id=\""+id+"\"></a>\n")) {
					t.Errorf("docs/findings.md has no finding %s", id)
				}
			}
			sys := systems[d.protocol]
			d.checkCases(t, program, sys.serve, ways...)
			if d.whole != "" {
				d.checkBytewise(t, program)
			}
			peers.Need(t, sys.server)
			a := audit.New(audit.Options{Protocol: sys.protocol})
			d.checkCases(t, program, sys.audited(t, a), play.Plain)
			d.checkBreaches(t, a.Report())
		})
	}
}

// TestReferencePeers: the reference clients and workers pass the same cases.
func TestReferencePeers(t *testing.T) {
	for protocol, drive := range map[string]conform.Program{"gearman": gearmanpeer.Drive, "beanstalk": beanstalkpeer.Drive} {
		d := driver{protocol: protocol}
		d.checkCases(t, drive, systems[protocol].serve, play.Plain, play.Bytewise)
	}
}

// prepare checks that the peers of a driver are installed, and builds the driver if necessary.
func (d *driver) prepare(t *testing.T) conform.Program {
	t.Helper()
	if d.peer != "" {
		peers.Need(t, d.peer)
	}
	if d.module != "" {
		if _, err := os.Stat(filepath.Join("node/node_modules", d.module)); err != nil {
			missing := t.Skipf
			if os.Getenv(peers.Required) == "1" {
				missing = t.Fatalf
			}
			missing("peer %s is not installed: make peers", d.module)
		}
	}
	command := d.command
	if strings.Contains(command, "{built}") {
		built := filepath.Join(t.TempDir(), "driver")
		build := []string{"go", "build", "-C", d.name, "-o", built, "."}
		if d.peer == "libgearman" {
			build = []string{"cc", "-o", built, d.name + "/driver.c", "-lgearman"}
		}
		if out, err := exec.Command(build[0], build[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		command = strings.ReplaceAll(command, "{built}", built)
	}
	p, err := conform.Command(command)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// checkCases runs the cases with a program, and compares the failures with the known findings.
func (d *driver) checkCases(t *testing.T, p conform.Program, start func(context.Context) (target.Target, error), ways ...play.Segmentation) {
	t.Helper()
	checked := 0
	for _, r := range d.perform(t, p, start, ways) {
		switch known := d.short[r.Case.ID]; {
		case r.Verdict == conform.Skipped || d.chance[r.Case.ID] != "":
			continue
		case r.Verdict == conform.Passed && known != "":
			t.Errorf("%s passes: %q is no longer true", r.Case.ID, known)
		case r.Verdict != conform.Passed && known == "":
			t.Errorf("%s: %s: %s", r.Case.ID, r.Verdict, r.Note)
		}
		checked++
	}
	if checked < 20 {
		t.Errorf("%d cases were judged", checked)
	}
}

// checkBreaches compares the violations that a proxy has reported with the known ones of the library.
func (d *driver) checkBreaches(t *testing.T, r *audit.Report) {
	t.Helper()
	if r.Connections < 20 || r.Messages[codec.Peer] < 50 {
		t.Errorf("the proxy has heard %d messages on %d connections", r.Messages[codec.Peer], r.Connections)
	}
	var broken []codec.RuleID
	for _, b := range r.BrokenRules {
		if b.By == codec.Peer && b.Rule.Level == codec.Must {
			broken = append(broken, b.Rule.ID)
			t.Logf("%s, %d times: %v", b.Rule.ID, b.Count, b.First[0].Err)
		}
	}
	slices.Sort(broken)
	if !slices.Equal(broken, d.breaks) {
		t.Errorf("after the proxy it breaks %q, and is known to break %q", broken, d.breaks)
	}
}

// checkBytewise checks that a driver fails if messages arrive byte by byte. A busy machine may deliver several bytes at
// once, so one failed case is sufficient.
func (d *driver) checkBytewise(t *testing.T, p conform.Program) {
	t.Helper()
	var passed []string
	for _, r := range d.perform(t, p, systems[d.protocol].serve, []play.Segmentation{play.Bytewise}, d.protocol+".client.in-turn", d.protocol+".client.two-tubes", d.protocol+".worker.timeout", d.protocol+".worker.loop", d.protocol+".worker.release", d.protocol+".worker.touch") {
		if r.Verdict != conform.Passed {
			return
		}
		passed = append(passed, r.Case.ID)
	}
	t.Errorf("%v pass: %q is no longer true", passed, d.whole)
}

// perform runs the named cases, or all cases, with a program.
func (d *driver) perform(t *testing.T, p conform.Program, start func(context.Context) (target.Target, error), ways []play.Segmentation, cases ...string) []conform.Result {
	t.Helper()
	suite, err := conform.LoadFS(systems[d.protocol].protocol, os.DirFS(filepath.Join("cases", d.protocol)))
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) > 0 {
		suite.Cases = slices.DeleteFunc(suite.Cases, func(c *conform.Case) bool { return !slices.Contains(cases, c.ID) })
	}
	// A case that is listed as flaky keeps its verdict if it passes, and is not run again if it exceeds a time limit.
	known := &conform.Profile{Name: d.name}
	for id, finding := range d.short {
		known.Flaky = append(known.Flaky, conform.Exception{Cases: id, Why: finding})
	}
	for id, finding := range d.chance {
		known.Flaky = append(known.Flaky, conform.Exception{Cases: id, Why: finding})
	}
	for _, id := range cases {
		known.Flaky = append(known.Flaky, conform.Exception{Cases: id, Why: d.whole})
	}
	r := conform.Runner{Start: start, Programs: map[string]conform.Program{"Client": p, "Worker": p}, Segments: ways, Timeout: 20 * time.Second, Parallel: 4, Profile: known}
	return r.Run(t.Context(), suite, nil)
}
