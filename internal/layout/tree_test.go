package layout

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// root is the directory of the module, relative to this package.
const root = "../.."

// built matches files that builds and profilers write.
var built = regexp.MustCompile(`\.(test|prof|out)$`)

// tree calls visit for every file of the repository, with its slash-separated path. It skips Git's own files and those that
// .gitignore lists.
func tree(t *testing.T, visit func(name string, data []byte)) {
	t.Helper()
	module := os.DirFS(root)
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name == ".git" || name == "bin" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || built.MatchString(name) || name == ".git" { // in a worktree, .git is a file
			return nil
		}
		data, err := fs.ReadFile(module, name)
		if err == nil {
			visit(name, data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// source is a Go file of this module.
type source struct {
	name string // path relative to the module
	pkg  string // directory of the file
	test bool
	fset *token.FileSet
	file *ast.File
}

func parse(name string, data []byte) (source, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, data, parser.SkipObjectResolution)
	return source{name, path.Dir(name), strings.HasSuffix(name, "_test.go"), fset, f}, err
}

// sources parses the Go files of this module. It skips test data, tools and the example go-beanstalk; the latter two are
// separate modules.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	tree(t, func(name string, data []byte) {
		if !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "tools/") || strings.HasPrefix(name, "examples/go-beanstalk/") || strings.Contains(name, "testdata/") {
			return
		}
		s, err := parse(name, data)
		if err != nil {
			t.Error(err)
			return
		}
		all = append(all, s)
	})
	if len(all) < 10 {
		t.Fatalf("only %d Go files found: this is not the module's folder", len(all))
	}
	return all
}

func (s *source) imports() []string {
	var paths []string
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// calls returns the uses of package functions, such as "time.Sleep", that match names, with their positions. It skips nodes
// for which skip returns true.
func (s *source) calls(names *regexp.Regexp, skip func(ast.Node) bool) []string {
	var found []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if skip != nil && skip(n) {
			return false
		}
		if e, ok := n.(ast.Expr); ok {
			if name := qualified(e); names.MatchString(name) {
				found = append(found, fmt.Sprintf("%s: %s", s.fset.Position(n.Pos()), name))
			}
		}
		return true
	})
	return found
}

// qualified returns package.name, the name of a function of the same package, or "" for any other expression.
func qualified(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	if sel, ok := e.(*ast.SelectorExpr); ok {
		if pkg, ok := sel.X.(*ast.Ident); ok {
			return pkg.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// sleeps returns the calls of Sleep in tests, which must wait for events instead. They may sleep in a synctest bubble,
// where time is simulated, in a helper named bubble, and in a polling loop.
func sleeps(s *source) []string {
	if !s.test {
		return nil
	}
	pauses := map[ast.Node]bool{}
	return s.calls(regexp.MustCompile(`^time\.Sleep$`), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := qualified(n.Fun)
			return name == "synctest.Test" || name == "bubble"
		case *ast.ForStmt:
			pauses[n.Post] = n.Post != nil && n.Cond != nil
		case ast.Stmt:
			return pauses[n]
		}
		return false
	})
}

// noises returns the calls with which a library prints or exits. Only commands may do this, as well as programs that
// measure, helper programs of tests, and servers with injected crashes.
func noises(s *source) []string {
	if s.test || strings.HasPrefix(s.name, "cmd/") || strings.HasPrefix(s.name, "fuzz/faults/") || s.file.Name.Name == "main" {
		return nil
	}
	return s.calls(regexp.MustCompile(`^(fmt\.Print(f|ln)?|os\.(Exit|Stdout|Stderr)|log\.(Print|Fatal|Panic)(f|ln)?)$`), nil)
}

// unescaped are the functions of product code that write without [prose.Writer], by file, with the reason.
var unescaped = map[string]string{
	"cmd/internal/cli/output.go":          "prose.Writer itself",
	"cmd/jobwire/main.go":                 "run makes an output of both; the other message has no foreign text",
	"cmd/jobwire/encode.go":               "raw bytes",
	"cmd/internal/capturefile/capture.go": "captures",
	"cmd/jobwire/audit_record.go":         "captures",
	"cmd/internal/fuzzcmd/output.go":      "captures, inputs of go test, and quoted keys",
	"cmd/jobwire/export.go":               "raw bytes of the corpus",
	"cmd/internal/cli/man.go":             "no foreign text",
	"cmd/internal/connect/connection.go":  "keys of TLS",
	"codec/vectors/add.go":                "transcripts, whose notation is ASCII",
	"pcap/input.go":                       "a copy of a capture",
	"pcap/replay/write.go":                "transcripts",
	"fuzz/input/store.go":                 "inputs, which only fuzz reads",
	"fuzz/faults/effects.go":              "a server with faults",
	"internal/newfile/newfile.go":         "bytes of the other files in this list",
	"internal/target/sysproc_unix.go":     "an empty file",
}

// writers returns the calls with which product code could write foreign text without escapes.
func writers(s *source) []string {
	if s.test || unescaped[s.name] != "" || s.file.Name.Name == "main" && !strings.HasPrefix(s.name, "cmd/") {
		return nil
	}
	return s.calls(regexp.MustCompile(`^(os\.(Create(Temp)?|WriteFile|OpenFile|Stdout|Stderr)|newfile\.Write(Once)?|cli\.UnescapedWriter)$`), nil)
}

// TestForeignTextIsEscaped tests that there is one way from foreign text to a terminal or a file.
func TestForeignTextIsEscaped(t *testing.T) {
	left := maps.Clone(unescaped)
	for _, s := range sources(t) {
		delete(left, s.name)
		for _, at := range writers(&s) {
			t.Errorf("%s: write text with the functions of cmd/internal/cli/output.go, which escape what can control a terminal", at)
		}
	}
	for name := range left {
		t.Errorf("%s: no such file", name)
	}
}

// TestNoSleepsInTests tests that tests do not wait for a fixed time, except in a synctest bubble or a polling loop.
func TestNoSleepsInTests(t *testing.T) {
	for _, s := range sources(t) {
		for _, at := range sleeps(&s) {
			t.Errorf("%s: tests do not sleep; wait for the event, or use testing/synctest", at)
		}
	}
}

// TestLibrariesStayQuiet tests that only commands print or exit.
func TestLibrariesStayQuiet(t *testing.T) {
	for _, s := range sources(t) {
		for _, at := range noises(&s) {
			t.Errorf("%s: libraries neither print nor exit", at)
		}
	}
}

// TestForbiddenCallsAreFound tests that the checks find calls that sleep in tests, that print or exit in libraries and
// that write text without escapes, and allow them where they are permitted.
func TestForbiddenCallsAreFound(t *testing.T) {
	tests := []struct {
		name, body             string
		sleep, noises, writers int
	}{
		{"a/a_test.go", "func f() { time.Sleep(1) }", 1, 0, 0},
		{"a/a_test.go", "func f() { wait := time.Sleep; wait(1) }", 1, 0, 0},
		{"a/a_test.go", "func f(t *T) { synctest.Test(t, func(t *T) { time.Sleep(1) }) }", 0, 0, 0},
		{"a/a_test.go", "func f(t *T) { synctest.Test(t, g); time.Sleep(1) }", 1, 0, 0},
		{"a/a_test.go", "func f(t *T) { bubble(t, func() { time.Sleep(1) }) }", 0, 0, 0},
		{"a/a_test.go", "func f() { for !ok() { time.Sleep(1) } }", 1, 0, 0},
		{"a/a_test.go", "func f() { for ; !ok(); time.Sleep(1) {} }", 0, 0, 0},
		{"a/a_test.go", "func f() { for ; ; time.Sleep(1) {} }", 1, 0, 0},
		{"a/a.go", "func f() { time.Sleep(1) }", 0, 0, 0},
		{"a/a.go", `func f() { fmt.Println(); os.Exit(1); log.Fatalf("") }`, 0, 3, 0},
		{"a/a.go", "func f() { fmt.Fprintln(os.Stderr) }", 0, 1, 1},
		{"a/a.go", "func f(w io.Writer) { fmt.Fprintln(w) }", 0, 0, 0},
		{"a/a_test.go", "func f() { fmt.Println(); os.Exit(1) }", 0, 0, 0},
		{"cmd/a/a.go", "func f() { fmt.Println(); os.Exit(1) }", 0, 0, 0},
		{"cmd/a/a.go", "func f() { os.Create(name); g(cli.UnescapedWriter(w)) }", 0, 0, 2},
		{"cmd/internal/capturefile/capture.go", "func f() { os.Create(name) }", 0, 0, 0},
	}
	for _, tt := range tests {
		s, err := parse(tt.name, []byte("package a\n"+tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if a, b, c := sleeps(&s), noises(&s), writers(&s); len(a) != tt.sleep || len(b) != tt.noises || len(c) != tt.writers {
			t.Errorf("%s: %s: sleeps %v, noises %v, writers %v; want %d, %d and %d",
				tt.name, tt.body, a, b, c, tt.sleep, tt.noises, tt.writers)
		}
	}
}

// maxFile is the maximum size of a file in the repository, in bytes.
const maxFile = 1 << 20

// machinePath matches absolute paths into home directories and similar directories of one machine.
var machinePath = regexp.MustCompile(`(?m)(^|[^A-Za-z0-9_.*-])/(work|root|home|Users)/[A-Za-z0-9_.-]`)

// checkFile returns the problem of a file, or "".
func checkFile(name string, data []byte) string {
	if len(data) > maxFile {
		return fmt.Sprintf("%s: %d bytes; the largest file taken has %d", name, len(data), maxFile)
	}
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return "" // not text
	}
	if at := machinePath.FindIndex(data); at != nil {
		line := 1 + bytes.Count(data[:at[1]], []byte("\n"))
		return fmt.Sprintf("%s:%d: a path of one machine: %q", name, line, data[at[0]:at[1]])
	}
	return ""
}

// TestNoMachinePathsOrLargeFiles tests that no file contains a path of one machine or is larger than allowed.
func TestNoMachinePathsOrLargeFiles(t *testing.T) {
	tree(t, func(name string, data []byte) {
		if wrong := checkFile(name, data); wrong != "" {
			t.Error(wrong)
		}
	})
}

// TestMachinePathsAndLargeFilesAreFound tests that the check of files finds paths of one machine and files that are too
// large, and ignores URLs, usual paths and binary files.
func TestMachinePathsAndLargeFilesAreFound(t *testing.T) {
	dir := "/" + "root/" // split, because this file is checked too
	tests := []struct {
		data, wrong string
	}{
		{"one\nlog in " + dir + "x\n", "f:2: a path of one machine"},
		{dir + "x", "f:1:"},
		{"(" + dir + "x)", "f:1:"},
		{"see https://example.com" + dir + "x", ""},
		{"testdata" + dir + "x", ""},
		{"/usr/sbin/gearmand", ""},
		{"\x00" + dir + "x", ""},
		{strings.Repeat("x", maxFile), ""},
		{strings.Repeat("x", maxFile+1), "1048577 bytes"},
	}
	for _, tt := range tests {
		got := checkFile("f", []byte(tt.data))
		if (tt.wrong == "") != (got == "") || !strings.Contains(got, tt.wrong) {
			t.Errorf("%.40q: got %q, want %q", tt.data, got, tt.wrong)
		}
	}
}
