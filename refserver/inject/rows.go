package inject

import (
	"bytes"
	"fmt"
	"io/fs"

	"github.com/goccy/go-yaml"
)

// Rows reads the files *.yaml in fsys, in the order of their names: faulty servers that a fault script describes. It
// panics if a file is malformed. Each file is a list of rows:
//
//   - name: cant-do-resets
//     about: The server removes all functions of a worker on CANT_DO.
//     killed-by: worker.cant-do
//     fault: retype CANT_DO RESET_ABILITIES
//     slow: 30ms
func Rows(fsys fs.FS) []Row {
	files, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		panic(err)
	}
	var all []Row
	for _, name := range files {
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			panic(err)
		}
		var rows []Row
		if err := yaml.NewDecoder(bytes.NewReader(src), yaml.Strict()).Decode(&rows); err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
		all = append(all, rows...)
	}
	return all
}
