package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/internal/peers"
)

// standin returns a release of the program in testdata, copied to a new folder.
func standin(t *testing.T) *release {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/standin")); err != nil {
		t.Fatal(err)
	}
	return &release{dir, "1.2.0", "0123456789ab", time.Unix(1e9, 0).UTC()}
}

// untar returns the headers and contents of a tar archive, and checks that its entries do not depend on the machine.
func untar(t *testing.T, data []byte, date time.Time) (map[string]*tar.Header, map[string][]byte) {
	t.Helper()
	headers, files := map[string]*tar.Header{}, map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return headers, files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(date) || h.Uname != "" || h.Gname != "" {
			t.Errorf("%s: time %v, user %q, group %q", h.Name, h.ModTime, h.Uname, h.Gname)
		}
		headers[h.Name] = h
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func unzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLicenses checks that the licenses of the modules in the real program are found, also those in folders of packages.
func TestLicenses(t *testing.T) {
	t.Parallel()
	r := standin(t)
	r.dir = "../.."
	text, err := r.licenses(platform{"linux", "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nGo 1.", "\ngithub.com/spf13/cobra v", "\ngithub.com/klauspost/compress v", ", zstd/internal/xxhash/LICENSE.txt\n"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("no %q", want)
		}
	}
	if bytes.Contains(text, []byte("gopter")) {
		t.Error("gopter is only in tests, not in the program")
	}
}

// TestImage tests that the image is the same in another folder (not with -short), that its digests and sizes are right, that
// it runs the program as an ordinary user, and that it has certificates and folders to write to. skopeo must read it.
func TestImage(t *testing.T) {
	t.Parallel()
	platforms, err := parsePlatforms("linux/amd64", imagePlatforms)
	if err != nil {
		t.Fatal(err)
	}
	data, err := standin(t).image(platforms)
	if err != nil {
		t.Fatal(err)
	}
	if !testing.Short() {
		if again, err := standin(t).image(platforms); err != nil || !bytes.Equal(data, again) {
			t.Errorf("the second build differs from the first: %v", err)
		}
	}
	date := time.Unix(1e9, 0)
	_, files := untar(t, data, date)
	blob := func(d descriptor) []byte {
		t.Helper()
		b := files["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if len(b) != d.Size || fmt.Sprintf("sha256:%x", sha256.Sum256(b)) != d.Digest {
			t.Fatalf("blob %s has %d bytes, want %d", d.Digest, len(b), d.Size)
		}
		return b
	}
	decode := func(data []byte, v any) {
		t.Helper()
		if err := json.Unmarshal(data, v); err != nil {
			t.Fatal(err)
		}
	}
	var top, images index
	decode(files["index.json"], &top)
	decode(blob(top.Manifests[0]), &images)
	if len(images.Manifests) != len(platforms) {
		t.Fatalf("%d images, want %d", len(images.Manifests), len(platforms))
	}
	for i, d := range images.Manifests {
		var m ociImage
		var c imageConfig
		decode(blob(d), &m)
		decode(blob(m.Config), &c)
		if *d.Platform != c.imagePlatform || c.Architecture != platforms[i].arch || c.OS != "linux" {
			t.Errorf("platforms %+v and %+v, want %v", *d.Platform, c.imagePlatform, platforms[i])
		}
		if c.Config.User != "65534:65534" || !slices.Equal(c.Config.Entrypoint, []string{"/jobwire"}) {
			t.Errorf("configuration %+v", c.Config)
		}
		layer := unzipped(t, blob(m.Layers[0]))
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(layer)); got != c.RootFS.DiffIDs[0] {
			t.Errorf("layer %s, want %s", got, c.RootFS.DiffIDs[0])
		}
		headers, content := untar(t, layer, date)
		if h := headers["jobwire"]; h == nil || h.Mode != 0o755 {
			t.Errorf("program %+v", h)
		}
		if h := headers["data/"]; h == nil || h.Uid != imageUser || h.Gid != imageUser {
			t.Errorf("working directory %+v", h)
		}
		if h := headers["tmp/"]; h == nil || h.Mode != 0o1777 {
			t.Errorf("/tmp %+v", h)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(content["etc/ssl/certs/ca-certificates.crt"]) {
			t.Error("no certificates")
		}
	}

	t.Run("skopeo", func(t *testing.T) {
		skopeo := peers.Need(t, "skopeo")
		name := filepath.Join(t.TempDir(), "image.tar")
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, p := range platforms {
			cmd := exec.Command(skopeo, "--override-os", p.os, "--override-arch", p.arch, "inspect", "--config", "oci-archive:"+name)
			out, err := cmd.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte(`"architecture": "`+p.arch+`"`)) {
				t.Errorf("%s: %v\n%s", p, err, out)
			}
		}
	})
}

// TestReleaseVersion tests that the version of a release is that of its only tag, which must match the version of the
// source.
func TestReleaseVersion(t *testing.T) {
	for _, tt := range []struct{ source, tags, want, err string }{
		{"0.9.0-dev", "v0.9.0", "0.9.0", ""},
		{"0.9.0", "v0.9.0", "0.9.0", ""},
		{"0.9.0-dev", "v0.9.0-rc1", "0.9.0-rc1", ""},
		{"0.9.0-dev", "v0.9.1", "", "tag v0.9.1: expected v0.9.0"},
		{"0.9.0-dev", "v0.9.0 v0.9.0-rc1", "", "several tags"},
	} {
		got, err := releaseVersion(tt.source, strings.Fields(tt.tags))
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s at %s: got %q, %v", tt.source, tt.tags, got, err)
		}
	}
}

// TestPlatforms tests that an unknown platform is rejected, and that an empty list stands for all platforms.
func TestPlatforms(t *testing.T) {
	if _, err := parsePlatforms("linux/mips", archivePlatforms); err == nil {
		t.Error("an unknown platform was accepted")
	}
	if all, err := parsePlatforms("", archivePlatforms); err != nil || len(all) != 8 || all[2] != (platform{"darwin", "amd64"}) {
		t.Errorf("platforms %v, %v", all, err)
	}
}
