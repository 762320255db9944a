// Package peers finds and starts third-party programs that tests need. "make peers" installs them. A test whose peer is
// missing is skipped, or fails if JOBWIRE_REQUIRE_PEERS is 1.
package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"jobwire/internal/target"
)

// Required is the environment variable that turns skips into failures.
const Required = "JOBWIRE_REQUIRE_PEERS"

// peer is a third-party program, or a library and its interpreter or compiler.
type peer struct {
	program string   // path, or name to be found in PATH
	probe   []string // arguments with which the program succeeds if everything that the peer needs is installed
	prints  string   // text that the probe must print
	serve   []string // arguments of a server; {port} is replaced, {dir} is replaced by an empty directory
}

var known = map[string]peer{
	// Servers. Both gearmands have the same name but different paths.
	"gearmand": {program: "/usr/sbin/gearmand",
		serve: []string{"-L", "127.0.0.1", "-p", "{port}", "-t", "1", "-l", "none"}},
	"gearmand-perl": {program: "/usr/bin/gearmand", serve: []string{"--listen=127.0.0.1", "--port={port}"}},
	"beanstalkd":    {program: "beanstalkd", serve: []string{"-l", "127.0.0.1", "-p", "{port}"}},
	"redis-server":  {program: "redis-server", serve: []string{"--bind", "127.0.0.1", "--port", "{port}", "--save", "", "--appendonly", "no", "--dir", "{dir}"}},

	// Clients, workers and client libraries.
	"gearman":      {program: "gearman"},
	"gearman-perl": {program: "perl", probe: []string{"-MGearman::Client", "-MGearman::Worker", "-e1"}},
	"gearman-php":  {program: "php", probe: []string{"-m"}, prints: "gearman"},
	"libgearman":   {program: "cc", probe: []string{"-fsyntax-only", "-include", "libgearman-1.0/gearman.h", "-x", "c", "/dev/null"}},
	"pheanstalk":   {program: "php", probe: []string{"-r", "require 'Pheanstalk/autoload.php';"}},
	"redis-cli":    {program: "redis-cli"},
	"beaneater":    {program: "ruby", probe: []string{"-rbeaneater", "-e1"}},
	"node":         {program: "node"},

	// A compiler with AddressSanitizer, for a server that is built in tests.
	"gcc": {program: "gcc", probe: []string{"-fsanitize=address,undefined", "-fsyntax-only", "-x", "c", "/dev/null"}},

	// A program that runs other programs with a changed clock.
	"faketime": {program: "faketime"},

	// Decoders and capture programs.
	"tshark":  {program: "tshark"},
	"editcap": {program: "editcap"},
	"tcpdump": {program: "tcpdump"},

	// A program that reads container images.
	"skopeo": {program: "skopeo"},

	// Programs that run the scripts in examples/ci.
	"bash": {program: "bash"},
	"make": {program: "make"},

	// A program that runs the example in examples/cases-runner.
	"python3": {program: "python3"},

	// A checker of man pages.
	"mandoc": {program: "mandoc"},

	// A program that makes network namespaces.
	"ip": {program: "ip"},

	// A TLS client that updates its keys.
	"openssl": {program: "openssl"},

	// A browser, for the tests of the web pages.
	"chromium": {program: "chromium"},
}

// finders has a function for each name that find was called with. It returns the results of peer.find, which it calls once.
var finders sync.Map // name to func() (path string, err error)

// find returns the path of the program of a peer in known, or an error if it is not installed. It looks for each program
// only once.
func find(name string) (string, error) {
	finder, ok := finders.Load(name)
	if !ok {
		finder, _ = finders.LoadOrStore(name, sync.OnceValues(func() (string, error) {
			p, ok := known[name]
			if !ok {
				panic("peers: no peer is called " + name)
			}
			return p.find()
		}))
	}
	return finder.(func() (string, error))()
}

// find returns the path of the program. If the peer has a probe, the program must accept these arguments and print the
// expected text; otherwise another program has the same name.
func (p *peer) find() (string, error) {
	path, err := exec.LookPath(p.program)
	if err != nil || p.probe == nil {
		return path, err
	}
	out, err := exec.Command(path, p.probe...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", p.program, strings.Join(p.probe, " "), err, out)
	}
	if !strings.Contains(string(out), p.prints) {
		return "", fmt.Errorf("%s %s: expected %q in its output", p.program, strings.Join(p.probe, " "), p.prints)
	}
	return path, nil
}

// Need returns the path of a peer's program: of the interpreter, if the peer is a library. If the peer is not
// installed, Need ends the test.
func Need(t testing.TB, name string) string {
	t.Helper()
	path, err := find(name)
	switch {
	case err == nil:
		return path
	case os.Getenv(Required) == "1":
		t.Fatalf("peer %s is not installed: make peers (%v)", name, err)
	default:
		t.Skipf("peer %s is not installed: make peers", name)
	}
	return ""
}

// Start starts a server on a free loopback port and waits until it accepts connections. args are added to the usual
// arguments. The server is stopped at the end of the test; if the test failed, the server's output is logged.
func Start(t testing.TB, name string, args ...string) target.Target {
	t.Helper()
	path, serve := Need(t, name), known[name].serve
	if serve == nil {
		t.Fatalf("peer %s is not a server", name)
	}
	dir := ""
	words := []string{path}
	for _, a := range append(serve[:len(serve):len(serve)], args...) {
		if strings.Contains(a, "{dir}") {
			if dir == "" {
				dir = t.TempDir()
			}
			a = strings.ReplaceAll(a, "{dir}", dir)
		}
		words = append(words, a)
	}
	// The server must not end before other cleanup functions of the test that use it.
	s, err := target.Command{Name: name, Args: words}.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if out := s.Output(); t.Failed() && out != "" {
			t.Logf("%s printed:\n%s", name, out)
		}
	})
	return s
}

// NodeModules returns the folder of the Node.js modules that "npm ci" has installed in dir. If the module with the given name is
// not installed, NodeModules ends the test.
func NodeModules(t testing.TB, dir, module string) string {
	t.Helper()
	modules := filepath.Join(dir, "node_modules")
	_, err := os.Stat(filepath.Join(modules, module, "package.json"))
	switch {
	case err == nil:
		return modules
	case os.Getenv(Required) == "1":
		t.Fatalf("peer %s is not installed: make peers (%v)", module, err)
	default:
		t.Skipf("peer %s is not installed: make peers", module)
	}
	return ""
}
