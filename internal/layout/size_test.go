package layout

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// Limits of Go files without tests.
const (
	maxComplexity = 30  // of a function: one more than the number of its branches
	maxFields     = 20  // of a struct
	maxSources    = 25  // in a folder
	maxColumns    = 120 // of a line
	maxLong       = 200 // one line of so many may be longer than maxColumns
)

// larger are the exceptions, each with its present size as its limit.
var larger = map[string]int{
	// One field for each property of a declaration.
	"codec.Type": 33, "codec.Field": 27, "codec.Protocol": 25, "codec.Values": 24, "refserver/inject.fault": 23,

	// One field for each setting that users choose, or each value of a document.
	"cmd/internal/benchcmd.benchOptions": 29, "cmd/internal/fuzzcmd.fuzzOptions": 22, "cmd/jobwire.conformOptions": 25, "conform/report.caseJSON": 21,
	"fuzz/report.Finding": 27, "loadgen.Config": 29, "loadgen/report.Report": 48, "pcap/report.pageData": 23,

	// The names that fault scripts use.
	"refserver/inject.Job": 23, "refserver/inject.Peer": 28, "refserver/inject.Server": 24,
}

func limit(name string, limit int) int {
	if n, ok := larger[name]; ok {
		return n
	}
	return limit
}

// complexity returns one more than the number of branches of a function, with those of the functions in it.
func complexity(body ast.Node) int {
	n := 1
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if node.List != nil {
				n++
			}
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// oversized returns the functions and structs of a file that are above the limits.
func oversized(s *source) (wrong []string) {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			name := s.pkg + "." + f.Name.Name
			if n := complexity(f.Body); n > limit(name, maxComplexity) {
				wrong = append(wrong, fmt.Sprintf("%s has a complexity of %d", name, n))
			}
		}
	}
	ast.Inspect(s.file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if fields, ok := spec.Type.(*ast.StructType); ok {
			name := s.pkg + "." + spec.Name.Name
			if n := fields.Fields.NumFields(); n > limit(name, maxFields) {
				wrong = append(wrong, fmt.Sprintf("%s has %d fields", name, n))
			}
		}
		return true
	})
	return wrong
}

// TestSizes tests that functions, structs and folders stay small enough to be read in one sitting.
func TestSizes(t *testing.T) {
	folders := map[string]int{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		folders[s.pkg]++
		for _, wrong := range oversized(&s) {
			t.Error(wrong)
		}
	}
	for name, n := range folders {
		if n > limit(name, maxSources) {
			t.Errorf("%s has %d Go files without tests", name, n)
		}
	}
}

// TestLineLengths tests that at most one in 200 lines of the product's code is longer than 120 columns.
func TestLineLengths(t *testing.T) {
	lines, long := 0, 0
	tree(t, func(name string, data []byte) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return
		}
		for line := range bytes.Lines(data) {
			lines++
			if len([]rune(strings.TrimSuffix(string(line), "\n"))) > maxColumns {
				long++
			}
		}
	})
	if maxLong*long > lines {
		t.Errorf("%d of %d lines have more than %d columns, at most one in %d may", long, lines, maxColumns, maxLong)
	}
}

// TestSizesAreMeasured tests that the check of sizes counts the branches of a function and finds a struct with too many
// fields.
func TestSizesAreMeasured(t *testing.T) {
	s, err := parse("p/f.go", []byte("package p\n\nfunc f(a, b bool) {\n\tif a && b {\n\t\tfor range 3 {\n\t\t}\n\t}\n"+
		"\tswitch {\n\tcase a:\n\tdefault:\n\t}\n}\n\ntype T struct{ "+strings.Repeat("a, ", maxFields)+"b int }\n"))
	if err != nil {
		t.Fatal(err)
	}
	if n := complexity(s.file); n != 5 {
		t.Errorf("complexity %d, want 5", n)
	}
	if wrong := oversized(&s); len(wrong) != 1 || wrong[0] != "p.T has 21 fields" {
		t.Errorf("%q", wrong)
	}
}
