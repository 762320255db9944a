package refserver

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadmeFiles compares the table of files in each server's README.md with the existing files.
func TestReadmeFiles(t *testing.T) {
	pages, err := filepath.Glob("*/README.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no README.md of a server: %v", err)
	}
	name := regexp.MustCompile(`[a-z_]+\.go`)
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(string(text), "| file | contents |\n")
		table, _, _ = strings.Cut(table, "\n\n")
		var listed []string
		for row := range strings.Lines(table) {
			first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
			listed = append(listed, name.FindAllString(first, -1)...)
		}
		files, err := filepath.Glob(filepath.Join(filepath.Dir(page), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range files {
			files[i] = filepath.Base(f)
		}
		for _, f := range listed {
			if !slices.Contains(files, f) {
				t.Errorf("%s lists %s, which does not exist", page, f)
			}
		}
		for _, f := range files {
			if !strings.Contains(f, "_") && !slices.Contains(listed, f) {
				t.Errorf("%s does not list %s", page, f)
			}
		}
	}
}
