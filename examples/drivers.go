package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/peers"
)

// A Driver is a driver of a client library in this directory.
type Driver struct {
	Name     string // as in the transcripts of docs/findings.md
	Protocol string
	peer     string            // the program that runs it; see internal/peers
	module   string            // the npm module that it also needs
	command  string            // {examples} is replaced by this directory, {built} by the program that Prepare builds
	short    map[string]string // cases that its library fails, with the anchors of the findings in docs/findings.md
	whole    string            // anchor of the finding if the library cannot read messages byte by byte
	breaks   []codec.RuleID    // rules that a proxy sees it violate, sorted
	chance   map[string]string // as short, but the cases fail only with a certain timing of messages or segments
}

// node returns the command of a driver for Node.js.
func node(name string) string {
	return "node --no-deprecation {examples}/node/" + name + ".js {host} {port}"
}

// Drivers lists the drivers in this directory.
var Drivers = []*Driver{
	{"perl", "gearman", "gearman-perl", "", "perl {examples}/gearman-perl/driver.pl {addr}", map[string]string{
		"gearman.client.zero":           "perl-client-zero-workload",
		"gearman.worker.zero":           "perl-worker-empty-result",
		"gearman.worker.empty-workload": "perl-worker-empty-result",
		"gearman.worker.empty-result":   "perl-worker-empty-result",
		"gearman.worker.exception":      "perl-worker-exception-and-fail",
		"gearman.worker.ends-once":      "perl-worker-exception-and-fail",
		"gearman.worker.goes-on":        "perl-worker-exception-and-fail",
	}, "", []codec.RuleID{"gearman.args.missing", "gearman.work.final"}, nil},
	{"php", "gearman", "gearman-php", "", "php {examples}/gearman-php/driver.php {host} {port}", map[string]string{
		"gearman.client.empty":               "php-empty-workload",
		"gearman.client.refused-then-served": "php-refused-task-waits",
	}, "", nil, nil},
	{"cli", "gearman", "gearman", "", "bash {examples}/gearman-cli/driver.sh {host} {port}", map[string]string{
		"gearman.worker.large": "gearman-command-large-workload",
	}, "", nil, nil},
	{"libgearman", "gearman", "libgearman", "", "{built} {host} {port}", map[string]string{
		"gearman.client.empty":               "php-empty-workload",
		"gearman.client.refused-then-served": "php-refused-task-waits",
	}, "", nil, nil},
	{"gearmanode", "gearman", "node", "gearmanode", node("gearmanode"), map[string]string{
		"gearman.client.refused-then-served": "gearmanode-error-shifts-handles",
		"gearman.worker.binary":              "gearmanode-binary-result",
	}, "gearmanode-short-segment", nil, nil},
	{"node-gearman", "gearman", "node", "node-gearman", node("node-gearman"), map[string]string{
		"gearman.client.background":          "node-gearman-background-nul",
		"gearman.client.status":              "node-gearman-background-nul",
		"gearman.client.background-handle":   "node-gearman-background-handle",
		"gearman.client.refused":             "node-gearman-error-ignored",
		"gearman.client.refused-then-served": "node-gearman-error-ignored",
	}, "", nil, nil},
	{"abraxas", "gearman", "node", "abraxas", node("abraxas"), map[string]string{
		"gearman.worker.exception": "abraxas-exception-and-fail",
		"gearman.worker.ends-once": "abraxas-exception-and-fail",
	}, "", []codec.RuleID{"gearman.work.final"}, map[string]string{
		"gearman.worker.goes-on": "abraxas-exception-and-fail",
	}},
	{"gearman-npm", "gearman", "node", "gearman", node("gearman"), map[string]string{
		"gearman.client.status":         "gearman-npm-status",
		"gearman.client.status-unknown": "gearman-npm-status",
		"gearman.worker.timeout":        "gearman-npm-timeout",
	}, "", []codec.RuleID{"gearman.args.surplus"}, nil},
	{"gearman-node", "gearman", "node", "gearman-node", node("gearman-node"), map[string]string{
		"gearman.client.refused-then-served": "gearman-node-error-shifts-handles",
	}, "", nil, nil},
	{"beaneater", "beanstalk", "beaneater", "", "ruby {examples}/beaneater/driver.rb {addr}", nil, "", nil, nil},
	{"go-beanstalk", "beanstalk", "", "", "{built} {addr}", nil, "", nil, nil},
	{"pheanstalk", "beanstalk", "pheanstalk", "", "php {examples}/pheanstalk/driver.php {host} {port}", nil, "", nil, nil},
	{"node-beanstalk", "beanstalk", "node", "node-beanstalk", node("node-beanstalk"), nil, "", nil, map[string]string{
		"beanstalk.worker.empty": "node-beanstalk-empty-body",
	}},
	{"beanstalkd-npm", "beanstalk", "node", "beanstalkd", node("beanstalkd"), nil, "beanstalkd-npm-late-crlf", nil, nil},
	{"beanstalk-client", "beanstalk", "node", "beanstalk_client", node("beanstalk_client"), map[string]string{
		"beanstalk.client.put-text":  "beanstalk-client-characters",
		"beanstalk.client.put-empty": "beanstalk-client-empty-body",
		"beanstalk.client.peek":      "beanstalk-client-reply-body",
		"beanstalk.client.stats":     "beanstalk-client-reply-body",
		"beanstalk.worker.binary":    "beanstalk-client-characters",
	}, "", []codec.RuleID{"beanstalk.message.complete", "beanstalk.put.body-crlf"}, nil},
	{"qbean", "beanstalk", "node", "qbean", node("qbean"), map[string]string{
		"beanstalk.client.put-empty": "qbean-empty-body",
		"beanstalk.worker.binary":    "qbean-binary-body",
		"beanstalk.worker.empty":     "qbean-empty-body",
	}, "", []codec.RuleID{"beanstalk.message.complete"}, nil},
	{"fivebeans", "beanstalk", "node", "fivebeans", node("fivebeans"), nil, "", nil, nil},
	{"jackd", "beanstalk", "node", "jackd", node("jackd"), map[string]string{
		"beanstalk.client.put-binary": "jackd-buffer-as-json",
		"beanstalk.client.put-empty":  "jackd-empty-body",
	}, "", nil, nil},
	{"nodestalker", "beanstalk", "node", "nodestalker", node("nodestalker"), map[string]string{
		"beanstalk.worker.empty": "nodestalker-empty-body",
	}, "nodestalker-segment-is-reply", nil, nil},
}

// Named returns the driver with a name of docs/findings.md, or nil.
func Named(name string) *Driver {
	for _, d := range Drivers {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Prepare checks that the library of a driver is installed, builds the driver if necessary, and returns it. dir is this
// directory. If the library is not installed, Prepare ends the test, as peers.Need does.
func (d *Driver) Prepare(t testing.TB, dir string) conform.Program {
	t.Helper()
	if d.peer != "" {
		peers.Need(t, d.peer)
	}
	if d.module != "" {
		if _, err := os.Stat(filepath.Join(dir, "node/node_modules", d.module)); err != nil {
			missing := t.Skipf
			if os.Getenv(peers.Required) == "1" {
				missing = t.Fatalf
			}
			missing("peer %s is not installed: make peers", d.module)
		}
	}
	command := strings.ReplaceAll(d.command, "{examples}", dir)
	if strings.Contains(command, "{built}") {
		built := filepath.Join(t.TempDir(), "driver")
		build := []string{"go", "build", "-C", filepath.Join(dir, d.Name), "-o", built, "."}
		if d.peer == "libgearman" {
			build = []string{"cc", "-o", built, filepath.Join(dir, d.Name, "driver.c"), "-lgearman"}
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
