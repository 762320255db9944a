package main

import (
	"os"
	"path/filepath"
	"testing"

	"jobwire/catalog"
)

// TestPagesAreCurrent compares the pages in docs/protocols with the declarations.
func TestPagesAreCurrent(t *testing.T) {
	for _, e := range catalog.All() {
		want, err := page(e.Protocol)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, e.Protocol.Name+".md")
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is not what the declarations say (%v): run 'go generate ./internal/reference'", name, err)
		}
	}
}
