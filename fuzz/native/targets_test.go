package native

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTargetsAreListed tests that the list of fuzz targets, from which other programs build them, contains every target
// of the module and nothing else.
func TestTargetsAreListed(t *testing.T) {
	const root = "../.."
	var listed, found []string
	list, err := os.Open(filepath.Join(root, ".clusterfuzzlite/targets"))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	for lines := bufio.NewScanner(list); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) < 2 || len(words) > 3 || len(words) == 3 && words[2] != "bubble" && words[2] != "internal" {
			t.Errorf("%q: expected a package, a target and an optional reason", lines.Text())
			continue
		}
		listed = append(listed, words[0]+" "+words[1])
	}
	target := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		src, err := os.ReadFile(name)
		dir, _ := filepath.Rel(root, filepath.Dir(name))
		for _, m := range target.FindAllSubmatch(src, -1) {
			found = append(found, filepath.ToSlash(dir)+" "+string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !slices.Contains(listed, f) {
			t.Errorf("%s is not listed in .clusterfuzzlite/targets", f)
		}
	}
	for _, l := range listed {
		if !slices.Contains(found, l) {
			t.Errorf(".clusterfuzzlite/targets lists %s, which does not exist", l)
		}
	}
}
