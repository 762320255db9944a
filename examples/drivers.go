package examples

import (
	"bytes"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/peers"
)

// A Driver is a driver of a client library in this directory: a row of drivers.yaml.
type Driver struct {
	Name     string            `yaml:"name"`
	Protocol string            `yaml:"protocol"`
	Peer     string            `yaml:"peer"`
	Module   string            `yaml:"module"`
	Command  string            `yaml:"command"`
	Fails    map[string]string `yaml:"fails"`
	MayFail  map[string]string `yaml:"may-fail"`
	Bytewise string            `yaml:"byte-by-byte"`
	Breaks   []codec.RuleID    `yaml:"breaks"`

	part int // which of the parts of the cases to run, from 1; 0: all cases
}

// parts is the number of parts into which the short tests divide the cases that a library passes. The first library has
// one part, the second the next: together, the libraries of a protocol run all cases.
const parts = 3

//go:embed drivers.yaml
var rows []byte

// Drivers lists the drivers in this directory.
var Drivers = func() (all []*Driver) {
	if err := yaml.NewDecoder(bytes.NewReader(rows), yaml.Strict()).Decode(&all); err != nil {
		panic(err)
	}
	return all
}()

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
	if d.Peer != "" {
		peers.Need(t, d.Peer)
	}
	if d.Module != "" {
		if _, err := os.Stat(filepath.Join(dir, "node/node_modules", d.Module)); err != nil {
			missing := t.Skipf
			if os.Getenv(peers.Required) == "1" {
				missing = t.Fatalf
			}
			missing("peer %s is not installed: make peers", d.Module)
		}
	}
	command := strings.ReplaceAll(d.Command, "{examples}", dir)
	if strings.Contains(command, "{built}") {
		built := filepath.Join(t.TempDir(), "driver")
		build := []string{"go", "build", "-C", filepath.Join(dir, d.Name), "-o", built, "."}
		if d.Peer == "libgearman" {
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
