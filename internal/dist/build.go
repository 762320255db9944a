package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// A file is part of an archive or image.
type file struct {
	name string // slash-separated
	mode fs.FileMode
	data []byte
}

// environment returns the settings of Go for a static program of a platform. They override those of the user that
// change the program.
func environment(p platform) []string {
	return []string{
		"GOOS=" + p.os, "GOARCH=" + p.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off",
	}
}

// build writes the program for a platform to out.
func (r *release) build(p platform, out string) error {
	flags := fmt.Sprintf("-s -w -X jobwire/internal/version.Number=%s -X jobwire/internal/version.commit=%s", r.version,
		r.commit)
	_, err := r.command(environment(p), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", out,
		"./cmd/jobwire")
	return err
}

// binary returns the program for a platform.
func (r *release) binary(p platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "dist")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "jobwire")
	if err := r.build(p, out); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// manual returns the man pages and completions, which the program writes itself.
func (r *release) manual() ([]file, error) {
	dir, err := os.MkdirTemp("", "dist")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "jobwire.exe") // the name that Windows needs
	if err := r.build(platform{runtime.GOOS, runtime.GOARCH}, program); err != nil {
		return nil, err
	}
	var files []file
	for shell, name := range map[string]string{"bash": "jobwire.bash", "zsh": "_jobwire", "fish": "jobwire.fish",
		"powershell": "jobwire.ps1"} {
		script, err := r.command(nil, program, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"completions/" + name, 0o644, script})
	}
	pages := filepath.Join(dir, "man")
	if _, err := r.command([]string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix())}, program, "man",
		pages); err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(pages, "*.1"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("jobwire man wrote no pages: %v", err)
	}
	for _, name := range names {
		page, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"man/man1/" + filepath.Base(name), 0o644, page})
	}
	return files, nil
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([.-].*)?$`)

// licenses returns the licenses of Go and of the packages of other modules that are in the program for a platform.
func (r *release) licenses(p platform) ([]byte, error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}|{{.Dir}}|{{$.Dir}}{{end}}{{end}}`
	list, err := r.command(environment(p), "go", "list", "-deps", "-f", format, "./cmd/jobwire")
	if err != nil {
		return nil, err
	}
	root, err := r.command(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	goroot := strings.TrimSpace(string(root))
	// The folders of each module, in which there may be a file: that of the module, and those of the packages and their
	// parents.
	folders := map[string]string{goroot: "Go " + goVersion(runtime.Version())}
	modules := map[string]string{goroot: goroot} // from a folder to that of its module
	for line := range strings.Lines(string(list)) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		if len(parts) != 3 {
			continue
		}
		for dir := parts[2]; ; dir = filepath.Dir(dir) {
			folders[dir], modules[dir] = parts[0], parts[1]
			if dir == parts[1] || len(dir) <= len(parts[1]) {
				break
			}
		}
	}
	licensed := map[string]bool{} // modules with a license
	var b bytes.Buffer
	b.WriteString("jobwire contains the software of this list. The license of jobwire itself is in the file LICENSE.\n")
	for _, dir := range slices.SortedFunc(maps.Keys(folders), func(x, y string) int {
		return cmp.Or(cmp.Compare(folders[x], folders[y]), cmp.Compare(x, y))
	}) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() || !licenseFile.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			name, _ := filepath.Rel(modules[dir], filepath.Join(dir, e.Name()))
			fmt.Fprintf(&b, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("=", 80), folders[dir], filepath.ToSlash(name),
				bytes.TrimSpace(text))
			licensed[folders[dir]] = true
		}
	}
	for _, module := range slices.Sorted(maps.Values(folders)) {
		if !licensed[module] {
			return nil, fmt.Errorf("%s: no license found", module)
		}
	}
	return b.Bytes(), nil
}
