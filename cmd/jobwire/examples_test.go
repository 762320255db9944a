package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobwire/conform"
	"jobwire/internal/peers"
)

// driver is one of those in the folder examples.
type driver struct {
	name     string
	protocol string
	peer     string // what runs it; see internal/peers
	module   string // what it needs from npm, beside it
	command  string
	short    map[string]string // cases that its library falls short of, and docs/findings.md's heading on why
}

const nodeDriver = "node --no-deprecation {examples}/node/%s.js {host} {port}"

var drivers = []driver{
	{"Perl", "gearman", "gearman-perl", "", "perl {examples}/gearman-perl/driver.pl {addr}", map[string]string{
		"gearman.client.zero":           "A workload of 0 is sent as an empty one",
		"gearman.worker.zero":           "A result that is empty, or 0, has no NUL behind the handle",
		"gearman.worker.empty-workload": "A result that is empty, or 0, has no NUL behind the handle",
		"gearman.worker.empty-result":   "A result that is empty, or 0, has no NUL behind the handle",
		"gearman.worker.exception":      "WORK_EXCEPTION is followed by WORK_FAIL",
		"gearman.worker.ends-once":      "WORK_EXCEPTION is followed by WORK_FAIL",
		"gearman.worker.goes-on":        "WORK_EXCEPTION is followed by WORK_FAIL",
	}},
	{"PHP", "gearman", "gearman-php", "", "php {examples}/gearman-php/driver.php {host} {port}", map[string]string{
		"gearman.client.empty":               "An empty workload is not sent",
		"gearman.client.refused-then-served": "A task that was refused is waited for ever after",
	}},
	{"the gearman command", "gearman", "gearman", "", "bash {examples}/gearman-cli/driver.sh {host} {port}", map[string]string{
		"gearman.worker.large": "A worker hangs on a workload larger than a pipe",
	}},
	{"gearmanode", "gearman", "node", "gearmanode", fmt.Sprintf(nodeDriver, "gearmanode"), map[string]string{
		"gearman.client.*":                   "Less than 12 bytes in a segment are lost",
		"gearman.worker.*":                   "Less than 12 bytes in a segment are lost",
		"gearman.client.refused-then-served": "An ERROR leaves its job in the queue, and the next job's handle goes to it",
		"gearman.worker.binary":              "A result is made text",
	}},
	{"node-gearman", "gearman", "node", "node-gearman", fmt.Sprintf(nodeDriver, "node-gearman"), map[string]string{
		"gearman.client.background":          "A background job has a NUL too many",
		"gearman.client.status":              "A background job has a NUL too many",
		"gearman.client.background-handle":   "A background job has a NUL too many",
		"gearman.client.refused":             "An ERROR is heard by nobody",
		"gearman.client.refused-then-served": "An ERROR is heard by nobody",
	}},
	{"abraxas", "gearman", "node", "abraxas", fmt.Sprintf(nodeDriver, "abraxas"), map[string]string{
		"gearman.worker.exception": "WORK_EXCEPTION is followed by WORK_FAIL, here too",
		"gearman.worker.ends-once": "WORK_EXCEPTION is followed by WORK_FAIL, here too",
		"gearman.worker.goes-on":   "WORK_EXCEPTION is followed by WORK_FAIL, here too",
	}},
	{"beaneater", "beanstalk", "beaneater", "", "ruby {examples}/beaneater/driver.rb {addr}", nil},
	{"go-beanstalk", "beanstalk", "", "", "{built} {addr}", nil},
	{"fivebeans", "beanstalk", "node", "fivebeans", fmt.Sprintf(nodeDriver, "fivebeans"), nil},
	{"jackd", "beanstalk", "node", "jackd", fmt.Sprintf(nodeDriver, "jackd"), map[string]string{
		"beanstalk.client.put-binary": "A Buffer is put as JSON",
		"beanstalk.client.put-empty":  "An empty body is not put",
	}},
	{"nodestalker", "beanstalk", "node", "nodestalker", fmt.Sprintf(nodeDriver, "nodestalker"), map[string]string{
		"beanstalk.client.*":     "A reply is what comes in a segment",
		"beanstalk.worker.*":     "A reply is what comes in a segment",
		"beanstalk.worker.empty": "A job with an empty body has no ID",
	}},
}

// TestDrivers judges every library in examples, against the embedded server and against the
// one in the field: each falls short of what docs/findings.md says, and of nothing else.
func TestDrivers(t *testing.T) {
	findings, err := os.ReadFile("../../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			command := d.prepare(t, examples)
			for _, heading := range d.short {
				if !bytes.Contains(findings, []byte("\n### "+heading+"\n")) {
					t.Errorf("docs/findings.md does not say: %s", heading)
				}
			}
			real := map[string]string{"gearman": "gearmand", "beanstalk": "beanstalkd"}[d.protocol]
			t.Run("embedded", func(t *testing.T) {
				t.Parallel()
				d.judge(t, command, "plain,bytewise")
			})
			t.Run(real, func(t *testing.T) {
				t.Parallel()
				peers.Need(t, real)
				_, profile := profileOf(t, real)
				d.judge(t, command, "plain", "--exec", profile.Exec)
			})
		})
	}
}

// prepare finds what a driver needs, and builds what is to be built.
func (d *driver) prepare(t *testing.T, examples string) (command string) {
	t.Helper()
	if d.peer != "" {
		peers.Need(t, d.peer)
	}
	if d.module != "" {
		if _, err := os.Stat(filepath.Join(examples, "node/node_modules", d.module)); err != nil {
			missing := t.Skipf
			if os.Getenv(peers.Required) == "1" {
				missing = t.Fatalf
			}
			missing("peer %s is not installed: make peers", d.module)
		}
	}
	command = strings.ReplaceAll(d.command, "{examples}", examples)
	if !strings.Contains(command, "{built}") {
		return command
	}
	built := filepath.Join(t.TempDir(), "driver")
	if out, err := exec.Command("go", "build", "-C", filepath.Join(examples, d.name), "-o", built, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.ReplaceAll(command, "{built}", built)
}

// judge holds a driver against the cases about programs.
func (d *driver) judge(t *testing.T, command, segments string, flags ...string) {
	args := append([]string{"conform", d.protocol, "--cases", "../../examples/cases/" + d.protocol, "--program", "Client=" + command, "--program", "Worker=" + command,
		"--format", "json", "--segments", segments, "--timeout", "3s", "--parallel", "6"}, flags...)
	var out, complaints bytes.Buffer
	run(t.Context(), args, nil, &out, &complaints)
	var report struct {
		Cases []struct {
			ID, Note, Segments string
			Verdict            conform.Verdict
		}
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Cases) < 20 {
		t.Fatalf("%v\n%s%s", err, out.String(), complaints.String())
	}
	judged := 0
	for _, c := range report.Cases {
		known := d.known(c.ID)
		whole := known != "" && d.short[c.ID] != "" // and not only if it is cut into bytes
		switch c.Verdict {
		case conform.Skipped:
			continue
		case conform.Passed:
			if whole {
				t.Errorf("%s passes: %q is no longer true", c.ID, known)
			}
		default:
			if known == "" || !whole && c.Verdict != conform.Unsteady {
				t.Errorf("%s: %s: %s", c.ID, c.Verdict, c.Note)
			}
		}
		judged++
	}
	if judged < 20 {
		t.Errorf("%d cases were judged\n%s", judged, complaints.String())
	}
}

// known returns why a driver falls short of a case, by its ID or a pattern of IDs.
func (d *driver) known(id string) string {
	if why := d.short[id]; why != "" {
		return why
	}
	for _, pattern := range slices.Sorted(maps.Keys(d.short)) {
		if ok, _ := path.Match(pattern, id); ok {
			return d.short[pattern]
		}
	}
	return ""
}
