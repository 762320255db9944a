package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// writeArchives writes one archive for each platform, and SHA256SUMS, to dir. It first removes older ones.
func (r *release) writeArchives(dir string, platforms []platform) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, pattern := range []string{"jobwire-*.tar.gz", "jobwire-*.zip", "SHA256SUMS"} {
		old, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, name := range old {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	common, err := r.manual()
	if err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(r.dir, name))
		if err != nil {
			return err
		}
		common = append(common, file{name, 0o644, data})
	}
	var sums []string
	for _, p := range platforms {
		name, data, err := r.archive(p, common)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
		sums = append(sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name))
		fmt.Printf("%s  %.1f MB\n", name, float64(len(data))/1e6)
	}
	slices.SortFunc(sums, func(a, b string) int { return cmp.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(strings.Join(sums, "")), 0o666)
}

// archive returns the name and the content of the archive for a platform. common are the files of all platforms.
func (r *release) archive(p platform, common []file) (string, []byte, error) {
	program, err := r.binary(p)
	if err != nil {
		return "", nil, err
	}
	sbom, err := r.sbom(program)
	if err != nil {
		return "", nil, err
	}
	licenses, err := r.licenses(p)
	if err != nil {
		return "", nil, err
	}
	name, suffix, write := "jobwire", ".tar.gz", writeTarGz
	if p.os == "windows" {
		name, suffix, write = "jobwire.exe", ".zip", writeZip
	}
	files := append(slices.Clone(common), file{name, 0o755, program}, file{"sbom.cdx.json", 0o644, sbom},
		file{"THIRD_PARTY_LICENSES", 0o644, licenses})
	folder := fmt.Sprintf("jobwire-%s-%s-%s", r.version, p.os, p.arch)
	for i := range files {
		files[i].name = folder + "/" + files[i].name
	}
	data, err := write(files, r.date)
	return folder + suffix, data, err
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

func writeTarGz(files []file, date time.Time) ([]byte, error) {
	data, err := writeTar(files, date, nil)
	if err != nil {
		return nil, err
	}
	return compress(data)
}

func writeZip(files []file, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range sorted(files) {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		h.SetMode(f.mode)
		entry, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := entry.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
