package readers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"jobwire/catalog"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/fuzz/native"
)

// sources returns the contents of the files of this module that match the pattern.
func sources(f *testing.F, pattern string) (all []string) {
	files, err := filepath.Glob(filepath.Join("../../..", pattern))
	if err != nil || len(files) == 0 {
		f.Fatalf("%s: no files, %v", pattern, err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, string(src))
	}
	return all
}

// entryOf returns the protocol with a number.
func entryOf(n byte) *catalog.Entry { return catalog.All()[int(n)%len(catalog.All())] }

// FuzzCases checks that an error about a file of cases or setups names a line of this file, and that each case of an
// accepted file can be selected by its name.
func FuzzCases(f *testing.F) {
	for i, e := range catalog.All() {
		folder := "conform/cases/" + e.Protocol.Name
		setups := strings.SplitAfter(sources(f, folder+"/setup.wire")[0], "\n\n")
		setups = setups[:min(len(setups), 4)]
		added := 0
		for _, src := range sources(f, folder+"/[0-9]*.wire") {
			for part := range strings.SplitSeq(src, "\n@case ") {
				if len(part) < 600 && added < 40 {
					f.Add(byte(i), []byte(strings.Join(setups[:added%len(setups)], "")), []byte("@case "+part))
					added++
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, protocol byte, setups, cases []byte) {
		files := fstest.MapFS{"a.wire": {Data: cases}}
		if len(setups) > 0 {
			files["setup.wire"] = &fstest.MapFile{Data: setups}
		}
		var suite *conform.Suite
		var err error
		read := func() { suite, err = conform.LoadFS(entryOf(protocol).Protocol, files) }
		if over := native.Bounded(len(setups)+len(cases), 96<<20, 64<<10, read); over != nil {
			t.Fatal(over)
		}
		if err != nil {
			if why := position(err, files); why != "" {
				t.Fatalf("%v: %s", err, why)
			}
			return
		}
		for _, c := range suite.Cases {
			if one, err := suite.Select([]string{"case:" + c.ID}, nil); err != nil || len(one.Cases) == 0 {
				t.Fatalf("case %q cannot be selected: %v", c.ID, err)
			}
		}
	})
}

// position returns why an error does not name a position in one of the files, or "".
func position(err error, files fstest.MapFS) string {
	var at *transcript.Error
	if !errors.As(err, &at) {
		for name := range files {
			if strings.HasPrefix(err.Error(), name+": ") {
				return ""
			}
		}
		return "expected an error with the name of a file"
	}
	src, err := fs.ReadFile(files, at.File)
	switch lines := strings.Count(string(src), "\n") + 1; {
	case err != nil:
		return "expected the name of a file"
	case at.Line < 1 || at.Line > lines || at.Col < 1:
		return "expected a line and a column of the file"
	}
	return ""
}
