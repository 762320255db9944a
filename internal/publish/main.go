// Command publish gives the module another path, such as github.com/OWNER/jobwire. "make publish-as" calls it. It changes
// the files of the current folder that git tracks:
//
//   - the module path in go.mod, in imports, and in names of packages in other files;
//   - OWNER/jobwire and "owner: OWNER", in addresses;
//   - comments in pages that begin with "after publication:", whose text becomes part of the page. In this text,
//     MODULE stands for the path, and OWNER/jobwire for the path without the host;
//   - empty strings in Go with such a comment, which become the text of the comment.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: publish MODULE")
		os.Exit(2)
	}
	changed, err := publish(".", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
	fmt.Printf("changed %d files\n", changed)
}

// publish changes the files in the folder dir, and returns how many.
func publish(dir, newPath string) (int, error) {
	if err := module.CheckPath(newPath); err != nil {
		return 0, err
	}
	if path.Base(newPath) != "jobwire" {
		return 0, fmt.Errorf("%s: the last element must be jobwire, the name of the program", newPath)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return 0, err
	}
	out, err := exec.Command("git", "-C", dir, "ls-files", "-z").Output()
	if err != nil {
		return 0, fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	change := rewriter(modfile.ModulePath(mod), newPath, files)
	changed := 0
	for _, name := range files {
		name = filepath.Join(dir, name)
		info, err := os.Lstat(name)
		if err != nil {
			return changed, err
		}
		if !info.Mode().IsRegular() || strings.Contains(name, "internal/publish/") {
			continue
		}
		old, err := os.ReadFile(name)
		if err != nil {
			return changed, err
		}
		src := change(old)
		if bytes.Equal(old, src) {
			continue
		}
		if strings.HasSuffix(name, ".go") {
			if src, err = format.Source(src); err != nil {
				return changed, fmt.Errorf("%s: %w", name, err)
			}
		}
		if err := os.WriteFile(name, src, info.Mode()); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

var (
	afterPublication = regexp.MustCompile(`(?s)<!-- after publication:\n(.*?)\n?-->`)
	emptyString      = regexp.MustCompile(`"" +// after publication: (\S+)`)
)

// rewriter returns a function that changes the contents of a file. A package is named by the path of the module and one of
// the folders with Go files, or in make and shell by the path and a variable. After a slash, the same text is the path of a
// file.
func rewriter(oldPath, newPath string, files []string) func([]byte) []byte {
	var folders []string
	for _, name := range files {
		if folder, _, nested := strings.Cut(name, "/"); nested && strings.HasSuffix(name, ".go") {
			folders = append(folders, regexp.QuoteMeta(folder)+`\b`)
		}
	}
	slices.Sort(folders)
	names := strings.Join(slices.Compact(folders), "|")
	old := regexp.QuoteMeta(oldPath)
	packages := regexp.MustCompile(`(^|[^\w./-])` + old + `(/(?:tools\b|%|\$|` + names + `))`)
	declared := regexp.MustCompile(`(?m)^((?:const )?module (?:= ")?)` + old + `(["/]|$)`)
	_, repository, _ := strings.Cut(newPath, "/")
	owner, _, _ := strings.Cut(repository, "/")
	owners := strings.NewReplacer("OWNER/jobwire", repository, "owner: OWNER", "owner: "+owner, "OWNER.github.io", owner+".github.io")
	return func(src []byte) []byte {
		src = afterPublication.ReplaceAllFunc(src, func(comment []byte) []byte {
			return bytes.ReplaceAll(afterPublication.FindSubmatch(comment)[1], []byte("MODULE"), []byte(newPath))
		})
		src = emptyString.ReplaceAllFunc(src, func(text []byte) []byte {
			return bytes.ReplaceAll(fmt.Appendf(nil, "%q", emptyString.FindSubmatch(text)[1]), []byte("MODULE"), []byte(newPath))
		})
		src = packages.ReplaceAll(src, []byte("${1}"+newPath+"${2}"))
		src = declared.ReplaceAll(src, []byte("${1}"+newPath+"${2}"))
		return []byte(owners.Replace(string(src)))
	}
}
