package inject

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/goccy/go-yaml"
)

// Specs returns a function that returns the rows of the files *.yaml in fsys, in the order of the file names, followed
// by the rows of lists. The first call reads the files, which takes milliseconds, and panics if a file is malformed.
// Each file is a list of faulty servers that are described by fault scripts:
//
//   - name: cant-do-resets
//     about: The server removes all functions of a worker on CANT_DO.
//     killed-by: worker.cant-do
//     fault: retype CANT_DO RESET_ABILITIES
func Specs(fsys fs.FS, lists ...[]MutantSpec) func() []MutantSpec {
	return sync.OnceValue(func() []MutantSpec {
		return append(Rows[MutantSpec](fsys, "*.yaml"),
			slices.Concat(lists...)...)
	})
}

// Rows returns the rows of the YAML files in fsys that match the pattern, in the order of the file names. It panics if
// a file is malformed.
func Rows[T any](fsys fs.FS, pattern string) []T {
	files, err := fs.Glob(fsys, pattern)
	if err != nil {
		panic(err)
	}
	var all []T
	for _, name := range files {
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			panic(err)
		}
		var specs []T
		if err := yaml.NewDecoder(bytes.NewReader(src), yaml.Strict()).Decode(&specs); err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
		all = append(all, specs...)
	}
	return all
}
