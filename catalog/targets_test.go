package catalog_test

import (
	"os"
	"path"
	"regexp"
	"testing"

	"jobwire/catalog"
)

// TestNativeFuzzTargets checks that the decoder and the sessions of each protocol have native fuzz targets.
func TestNativeFuzzTargets(t *testing.T) {
	targets, err := os.ReadFile("../.clusterfuzzlite/targets")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range catalog.All() {
		for _, target := range []string{"FuzzDecode", "FuzzSession"} {
			if !regexp.MustCompile(`(?m)^` + path.Join("fuzz/native", e.Protocol.Name) + ` +` + target + `$`).Match(targets) {
				t.Errorf(".clusterfuzzlite/targets lists no %s of %s", target, e.Protocol.Name)
			}
		}
	}
}
