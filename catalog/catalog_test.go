package catalog_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/conform"
	"jobwire/corpus"
)

// TestEntriesAreComplete checks that the parts of a protocol that are found by its name exist.
func TestEntriesAreComplete(t *testing.T) {
	var registered []string
	for _, p := range codec.Protocols() {
		registered = append(registered, p.Name)
	}
	if !slices.Equal(registered, catalog.Names()) {
		t.Errorf("package codec has the protocols %q, the catalog %q", registered, catalog.Names())
	}
	readme := read(t, "README.md")
	for _, e := range catalog.All() {
		name := e.Protocol.Name
		if found, err := catalog.Named(name); err != nil || found != e {
			t.Errorf("Named(%q) = %v, %v", name, found, err)
		}
		if e.Server(flag.NewFlagSet(name, flag.ContinueOnError))() == nil {
			t.Errorf("%s: no reference server", name)
		}
		if suite, err := conform.Load(e.Protocol); err != nil || len(suite.Cases) == 0 {
			t.Errorf("%s: no test cases in conform/cases/%[1]s: %v", name, err)
		}
		for _, file := range []string{"accept.wire", "reject.wire"} {
			if _, err := fs.Stat(corpus.Files(name), file); err != nil {
				t.Errorf("%s: no test vectors: %v", name, err)
			}
		}
		if row := "| [`" + name + "`](docs/protocols/" + name + ".md) |"; !strings.Contains(readme, row) {
			t.Errorf("%s: expected %q in README.md", name, row)
		}
	}
	if e, err := catalog.Named("smtp"); e != nil || err == nil || !strings.Contains(err.Error(), "expected gearman, ") {
		t.Errorf("Named of an unknown protocol = %v, %v", e, err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
