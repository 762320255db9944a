package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
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

var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([.-].*)?$`)

// licenses returns the licenses of Go and of the packages of other modules that are in the program for some of the
// platforms.
func (r *release) licenses(platforms ...platform) ([]byte, error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}|{{.Dir}}|{{$.Dir}}{{end}}{{end}}`
	var list []byte
	for _, p := range platforms {
		packages, err := r.command(environment(p), "go", "list", "-deps", "-f", format, "./cmd/jobwire")
		if err != nil {
			return nil, err
		}
		list = append(list, packages...)
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

// goVersion returns the number of a version of Go, as in "1.26.0", without experiments that the toolchain enables.
func goVersion(v string) string {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "go"), "-X:")
	return v
}

func sorted(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) })
}

// writeTar returns a tar archive whose entries belong to user and group 0, except for folders in owners, which maps a
// name to the number of its user and group. A name that ends with a slash is a folder.
func writeTar(files []file, date time.Time, owners map[string]int) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range sorted(files) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)),
			ModTime: date, Uid: owners[f.name], Gid: owners[f.name]}
		if f.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// compress returns the data in gzip format. Equal data has equal results, so that builds are reproducible.
func compress(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression) // its header has neither a name nor a time
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}
