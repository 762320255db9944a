package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const published = "github.com/someone/jobwire"

// TestRewriter shows what is the path of a package, and what is not.
func TestRewriter(t *testing.T) {
	t.Parallel()
	change := rewriter("jobwire", published, []string{"README.md", "codec/codec.go", "deploy/run.sh", "internal/version/version.go"})
	for before, after := range map[string]string{
		"module jobwire\n":                                     "module " + published + "\n",
		"module jobwire/tools\n":                               "module " + published + "/tools\n",
		"const module = \"jobwire\"\n":                         "const module = \"" + published + "\"\n",
		"import \"jobwire/codec\"\n":                           "import \"" + published + "/codec\"\n",
		"-X jobwire/internal/version.a=b":                      "-X " + published + "/internal/version.a=b",
		"-e jobwire/%, jobwire/$dir":                           "-e " + published + "/%, " + published + "/$dir",
		"uses: OWNER/jobwire@main":                             "uses: someone/jobwire@main",
		"a <!-- after publication:\n    go get MODULE\n--> b":  "a     go get " + published + " b",
		`x = "" // after publication: https://MODULE`:          `x = "https://` + published + `"`,
		`x = "" // after publication: https://OWNER.github.io`: `x = "https://someone.github.io"`,

		"./cmd/jobwire/codec":        "./cmd/jobwire/codec",
		"/usr/share/doc/jobwire/%":   "/usr/share/doc/jobwire/%",
		"jobwire/codecs":             "jobwire/codecs",
		"jobwire/deploy":             "jobwire/deploy",
		"jobwire conform":            "jobwire conform",
		"<!-- after the release -->": "<!-- after the release -->",
	} {
		if got := string(change([]byte(before))); got != after {
			t.Errorf("%q becomes %q, not %q", before, got, after)
		}
	}
}

// TestPublish publishes the tree to a module proxy that is a folder, and uses it as a stranger does: it installs the
// program, and tests a module of its own with package jobtest.
func TestPublish(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles everything again: run without -short")
	}
	tree := t.TempDir()
	clone(t, tree)
	changed, err := publish(tree, published)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files changed", changed)
	if left := run(t, tree, nil, "git", "grep", "-nE", `"jobwire/(codec|internal)|^module jobwire|OWNER/jobwire@`,
		"--", ":!internal/publish", ":!internal/dist/testdata"); left != "" {
		t.Errorf("the old path is still in\n%s", left)
	}

	// The steps of the action, and the imports.
	if got := run(t, tree, nil, "go", "test", "-short", "./examples/ci", "./internal/layout"); strings.Contains(got, "FAIL") {
		t.Errorf("tests of the tree with the new path: %s", got)
	}

	const version = "v0.9.0"
	proxy := filepath.Join(t.TempDir(), "proxy")
	versions := filepath.Join(proxy, published, "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := zip.CreateFromDir(&archive, module.Version{Path: published, Version: version}, tree); err != nil {
		t.Fatal(err)
	}
	t.Logf("the module has %.1f MB", float64(archive.Len())/1e6)
	mod, err := os.ReadFile(filepath.Join(tree, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, versions, map[string]string{"list": version + "\n", version + ".info": `{"Version":"` + version + `"}`,
		version + ".mod": string(mod), version + ".zip": archive.String()})
	// The user's module cache is a proxy for the other modules.
	goEnv := strings.Fields(run(t, tree, nil, "go", "env", "GOMODCACHE", "GOPROXY"))
	bin := t.TempDir()
	env := []string{"GOPROXY=file://" + proxy + ",file://" + goEnv[0] + "/cache/download," + goEnv[1], "GONOSUMDB=" + published,
		"GOMODCACHE=" + t.TempDir(), "GOBIN=" + bin, "GOFLAGS=-modcacherw", "GOWORK=off"}

	run(t, t.TempDir(), env, "go", "install", published+"/cmd/jobwire@"+version)
	program := filepath.Join(bin, "jobwire")
	if got := run(t, bin, nil, program, "version"); !strings.HasPrefix(got, "jobwire 0.9.0 (") {
		t.Errorf("the installed program has the version %q", got)
	}
	if got := run(t, bin, nil, program, "conform", "beanstalk", "--run", "beanstalk.put.*"); !strings.Contains(got, " passed in ") {
		t.Errorf("the installed program reports\n%s", got)
	}
	run(t, bin, nil, program, "conform", "beanstalk", "--run", "beanstalk.put.*", "--html", "report.html")
	report, err := os.ReadFile(filepath.Join(bin, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(report), `<a href="https://someone.github.io/jobwire/rules/beanstalk.`) {
		t.Error("the report has no links to the pages of rules")
	}

	stranger := t.TempDir()
	write(t, stranger, map[string]string{"go.mod": "module example.com/queue\n\ngo 1.26\n", "queue_test.go": `package queue

import (
	"testing"

	"` + published + `/jobtest"
)

func TestServer(t *testing.T) {
	if s := jobtest.NewServer(t, "beanstalk", jobtest.Options{}); s.Addr() == "" {
		t.Error("the server has no address")
	}
}
`})
	run(t, stranger, env, "go", "get", "-t", published+"/jobtest@"+version)
	run(t, stranger, env, "go", "mod", "tidy")
	if got := run(t, stranger, env, "go", "test", "./..."); !strings.HasPrefix(got, "ok") {
		t.Errorf("the tests of the other module: %s", got)
	}
}

// clone copies the files of the repository that git tracks, with the changes that are not committed, into a new
// repository.
func clone(t *testing.T, tree string) {
	t.Helper()
	root := filepath.Join("..", "..")
	for name := range strings.SplitSeq(strings.TrimRight(run(t, root, nil, "git", "ls-files", "-z"), "\x00"), "\x00") {
		src, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, src, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	run(t, tree, nil, "git", "init", "-q")
	run(t, tree, nil, "git", "add", "-A")
}

// write writes files into a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs a program in a folder and returns its output. git grep ends with 1 if it finds nothing.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil && (name != "git" || errs.Len() > 0) {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, errs.String())
	}
	return string(out)
}
