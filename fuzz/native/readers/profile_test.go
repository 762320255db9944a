package readers

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"jobwire/catalog"
	"jobwire/conform"
	"jobwire/fuzz/native"
)

// suites returns a suite of each protocol, with the cases of one file. All cases would take half a second.
var suites = sync.OnceValue(func() (all []*conform.Suite) {
	for _, e := range catalog.All() {
		s, err := conform.LoadFS(e.Protocol, oneFile(filepath.Join("../../../conform/cases", e.Protocol.Name)))
		if err != nil {
			panic(err)
		}
		all = append(all, s)
	}
	return all
})

// oneFile returns the setups and the first file of cases in a folder.
func oneFile(folder string) fs.FS {
	files := fstest.MapFS{}
	for _, pattern := range []string{"setup.wire", "01-*.wire"} {
		names, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(names) == 0 {
			panic(fmt.Sprintf("%s: no %s, %v", folder, pattern, err))
		}
		src, err := os.ReadFile(names[0])
		if err != nil {
			panic(err)
		}
		files[filepath.Base(names[0])] = &fstest.MapFile{Data: src}
	}
	return files
}

// FuzzProfile checks that a profile that is accepted has a name and only exceptions with a reason, and that an error
// names the file.
func FuzzProfile(f *testing.F) {
	for i, e := range catalog.All() {
		for _, src := range sources(f, filepath.Join("conform/profiles", e.Protocol.Name, "*.yaml")) {
			entries := strings.SplitAfter(src, "\n  - ")
			f.Add(byte(i), []byte(strings.TrimSuffix(strings.Join(entries[:min(len(entries), 4)], ""), "\n  - ")))
		}
	}
	for i := range catalog.All() {
		s := suites()[i]
		src := fmt.Appendf(nil, "name: a\nlacks: [%[1]s]\nwaive: [%[2]s]\nflaky:\n  - cases: %[3]s\n    why: &a b\n"+
			"known:\n  - cases: '*'\n    why: *a\nfuzz:\n  avoid: [%[2]s]\n  after: [%[1]s]\n",
			s.Protocol.Types[0].Name, s.Cases[0].Rules[0], s.Cases[0].ID)
		if _, err := conform.ParseProfile("a.yaml", src, s); err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), src)
	}
	f.Add(byte(0), []byte("name: &a [x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\nlacks: [*c, *c]\n"))
	f.Fuzz(func(t *testing.T, protocol byte, src []byte) {
		var p *conform.Profile
		var err error
		suite := suites()[int(protocol)%len(catalog.All())]
		read := func() { p, err = conform.ParseProfile("a.yaml", src, suite) }
		if over := native.Bounded(len(src), 16<<20, 64<<10, read); over != nil {
			t.Fatal(over)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "a.yaml:") {
				t.Fatalf("%v: expected an error with the name of the file", err)
			}
			return
		}
		for _, e := range append(p.Known, p.Flaky...) {
			if e.Why == "" || p.Name == "" {
				t.Fatalf("%+v", p)
			}
		}
	})
}
