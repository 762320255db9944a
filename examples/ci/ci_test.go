// Package ci tests the examples for continuous integration, and the scripts of action.yml, which run jobwire in the same way.
package ci

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"jobwire/internal/peers"
)

const root = "../.."

// A step is part of a composite action for GitHub Actions.
type step struct {
	Name string
	If   string
	Run  string
	Env  map[string]string
}

// A job is a folder in which the scripts of an example run, with bash, as on a CI machine.
type job struct {
	t    *testing.T
	dir  string
	path string
	env  []string
}

// server starts the server that the examples test.
const server = "jobwire serve gearman --listen 127.0.0.1:{port}"

// program is jobwire, which TestMain builds once for all tests; "" with -short.
var program string

// TestMain builds jobwire, which the scripts of the examples run, and then runs the tests. With -short it builds
// nothing.
func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	flag.Parse()
	if testing.Short() {
		return m.Run() // the tests that need the program are skipped
	}
	dir, err := os.MkdirTemp("", "jobwire-ci")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "jobwire")
	if out, err := exec.Command("go", "-C", root, "build", "-o", program, "./cmd/jobwire").CombinedOutput(); err != nil {
		fmt.Printf("go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// skipIfShort skips a test that runs the scripts of an example if -short is set.
func skipIfShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds jobwire and runs it for seconds: run without -short")
	}
}

// newJob puts a script before jobwire in PATH, which runs only one test case and one fault profile, so that the tests
// are fast.
func newJob(t *testing.T, testCase string) *job {
	t.Helper()
	bin, dir := t.TempDir(), t.TempDir()
	script := `#!/bin/sh
case "$1" in
conform) set -- "$@" --run '` + testCase + `' ;;
audit) set -- "$@" bytewise ;;
esac
exec '` + program + `' "$@"
`
	if err := os.WriteFile(filepath.Join(bin, "jobwire"), []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	return &job{t, dir, bin + ":" + os.Getenv("PATH"), nil}
}

// run runs a command in the folder of the job.
func (j *job) run(name string, args ...string) {
	j.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = j.dir
	cmd.Env = append(append(os.Environ(), j.env...), "PATH="+j.path)
	if out, err := cmd.CombinedOutput(); err != nil {
		j.t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// want checks that the reports exist and have a content.
func (j *job) want(names ...string) {
	j.t.Helper()
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(j.dir, name)); err != nil || info.Size() == 0 {
			j.t.Errorf("report %s: %v", name, err)
		}
	}
}

func readYAML(t *testing.T, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

var expression = regexp.MustCompile(`\$\{\{ *([a-z]+)\.([a-z_-]+) *\}\}`)

// TestAction tests that the scripts of action.yml run with the inputs of the action and write the reports that it
// promises.
func TestAction(t *testing.T) {
	skipIfShort(t)
	t.Parallel()
	j := newJob(t, "gearman.echo.client")
	j.act(map[string]string{"protocol": "gearman", "command": server, "profile": "embedded", "fuzz-duration": "3s",
		"bench-duration": "1s", "bench-slo": "p50<1m"}, "")
	for _, name := range []string{"conform.html", "fuzz.sarif", "fuzz.html", "bench.json", "bench.html"} {
		j.want("jobwire-reports/" + name)
	}
}

// TestActionForLibrary tests the scripts of action.yml with a driver of a library in place of a server.
func TestActionForLibrary(t *testing.T) {
	skipIfShort(t)
	t.Parallel()
	perl := peers.Need(t, "gearman-perl")
	driver, err := filepath.Abs("../gearman-perl/driver.pl")
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(t, "gearman.client.submit")
	j.act(map[string]string{"protocol": "gearman", "program": "Client=" + perl + " " + driver + " {addr}\n"}, "fuzz bench")
	j.want("jobwire-reports/conform.html")
}

// act runs the scripts of action.yml with the inputs, except the steps of the names in skipped.
func (j *job) act(inputs map[string]string, skipped string) {
	t := j.t
	t.Helper()
	bash := peers.Need(t, "bash")
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct{ Steps []step }
	}
	readYAML(t, filepath.Join(root, "action.yml"), &action)
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	paths := filepath.Join(t.TempDir(), "path")
	runner := t.TempDir()
	for _, s := range action.Runs.Steps {
		if s.Run == "" {
			continue // the step uses another action
		}
		if without := strings.Contains(s.If, "inputs.program == ''"); slices.Contains(strings.Fields(skipped), s.Name) {
			if !without {
				t.Errorf("step %s runs with a program", s.Name)
			}
			continue
		}
		if expression.MatchString(s.Run) {
			t.Errorf("step %s: an expression in a script can inject commands; use env", s.Name)
		}
		j.env = []string{"GITHUB_PATH=" + paths, "RUNNER_TEMP=" + runner}
		for name, value := range s.Env {
			j.env = append(j.env, name+"="+expression.ReplaceAllStringFunc(value, func(e string) string {
				m := expression.FindStringSubmatch(e)
				if m[1]+"."+m[2] == "github.action_path" {
					return source
				}
				input, ok := action.Inputs[m[2]]
				if m[1] != "inputs" || !ok {
					t.Errorf("step %s: unknown value %s", s.Name, e)
				}
				if v, ok := inputs[m[2]]; ok {
					return v
				}
				return input.Default
			}))
		}
		// These are the options of "shell: bash".
		j.run(bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
	}
	if added, err := os.ReadFile(paths); err != nil {
		t.Error(err)
	} else if _, err := exec.LookPath(filepath.Join(strings.TrimSpace(string(added)), "jobwire")); err != nil {
		t.Errorf("the folder that is added to PATH has no jobwire: %v", err)
	}
}

// pinned is the version of an action: a tag with at least one number, or a commit.
var pinned = regexp.MustCompile(`^uses: [\w./-]+@(v\d+(\.\d+)*|[0-9a-f]{40})( #.*)?$`)

// TestPins tests that the action, the example and the workflows of this repository use no branch of another action, and that
// the example uses a release of jobwire.
func TestPins(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	uses := 0
	for _, name := range append(files, "github.yml", filepath.Join(root, "action.yml")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "- ")
			if !strings.HasPrefix(line, "uses:") {
				continue
			}
			if uses++; !pinned.MatchString(line) {
				t.Errorf("%s: expected a version of an action, got %q", name, line)
			}
			if strings.Contains(line, "/jobwire@") && !regexp.MustCompile(`@v\d+\.\d+\.\d+$`).MatchString(line) {
				t.Errorf("%s: expected a release of jobwire, got %q", name, line)
			}
		}
	}
	if uses == 0 {
		t.Error("found no action")
	}
}

// TestWorkflow checks that the example for GitHub Actions uses inputs that action.yml has.
func TestWorkflow(t *testing.T) {
	var action struct {
		Inputs map[string]struct{ Required bool }
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]string
			}
		}
	}
	readYAML(t, filepath.Join(root, "action.yml"), &action)
	readYAML(t, "github.yml", &workflow)
	for _, s := range workflow.Jobs["jobwire"].Steps {
		if !strings.HasPrefix(s.Uses, "OWNER/jobwire@") {
			continue
		}
		for name := range s.With {
			if _, ok := action.Inputs[name]; !ok {
				t.Errorf("action.yml has no input %s", name)
			}
		}
		for name, input := range action.Inputs {
			if _, ok := s.With[name]; input.Required && !ok {
				t.Errorf("the input %s is missing", name)
			}
		}
		return
	}
	t.Error("the workflow does not use action.yml")
}

// TestGitlab tests that the script of the example for GitLab CI runs and writes the reports that it promises.
func TestGitlab(t *testing.T) {
	skipIfShort(t)
	t.Parallel()
	bash := peers.Need(t, "bash")
	var config struct {
		Jobwire struct {
			Script []string
		}
	}
	readYAML(t, "gitlab-ci.yml", &config)
	if len(config.Jobwire.Script) == 0 {
		t.Fatal("no script")
	}
	j := newJob(t, "gearman.echo.client")
	j.env = []string{"PROTOCOL=gearman", "COMMAND=" + server, "FUZZ=3s", "BENCH=1s"}
	j.run(bash, "-eo", "pipefail", "-c", "mkdir -p reports\n"+strings.Join(config.Jobwire.Script, "\n"))
	j.want("reports/conform.xml", "reports/conform.html", "reports/fuzz.xml", "reports/fuzz.html", "reports/bench.json", "reports/bench.html")
}

// TestMakefile tests that the targets of the example for make run and write the reports that they promise.
func TestMakefile(t *testing.T) {
	skipIfShort(t)
	t.Parallel()
	gnuMake := peers.Need(t, "make")
	makefile, err := filepath.Abs("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(t, "gearman.echo.client")
	j.run(gnuMake, "-f", makefile, "PROTOCOL=gearman", "COMMAND="+server, "FUZZ=3s", "BENCH=1s")
	j.want("reports/conform.html", "reports/fuzz.html", "reports/bench.json", "reports/bench.html")
}
