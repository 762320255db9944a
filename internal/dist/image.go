package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the user and group of the image: a number, because Kubernetes checks only numbers (runAsNonRoot).
const imageUser = 65534

// Media types and structures of the OCI image specification 1.1 (https://github.com/opencontainers/image-spec).
const (
	mediaIndex  = "application/vnd.oci.image.index.v1+json"
	mediaImage  = "application/vnd.oci.image.manifest.v1+json"
	mediaConfig = "application/vnd.oci.image.config.v1+json"
	mediaLayer  = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *imagePlatform    `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type imagePlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Manifests     []descriptor      `json:"manifests"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type ociImage struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type imageConfig struct {
	Created time.Time `json:"created"`
	imagePlatform
	Config struct {
		User       string
		Env        []string
		Entrypoint []string
		WorkingDir string
		Labels     map[string]string
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []imageHistory `json:"history"`
}

type imageHistory struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

// A layout collects the files of an OCI archive.
type layout struct{ files []file }

// add stores a blob.
func (l *layout) add(mediaType string, data []byte) descriptor {
	sum := fmt.Sprintf("%x", sha256.Sum256(data))
	l.files = append(l.files, file{"blobs/sha256/" + sum, 0o644, data})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(data)}
}

func (l *layout) addJSON(mediaType string, v any) (descriptor, error) {
	data, err := json.Marshal(v)
	return l.add(mediaType, data), err
}

// image returns an OCI archive: a tar archive of an OCI image layout. Its index has one image for each platform.
func (r *release) image(platforms []platform) ([]byte, error) {
	labels := map[string]string{
		"org.opencontainers.image.title":       "jobwire",
		"org.opencontainers.image.description": "Test, fuzz and load job queues",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.commit,
		"org.opencontainers.image.created":     r.date.Format(time.RFC3339),
	}
	var l layout
	images := index{2, mediaIndex, nil, labels}
	for _, p := range platforms {
		d, err := r.platformImage(&l, p, labels)
		if err != nil {
			return nil, err
		}
		d.Platform = &imagePlatform{p.arch, p.os}
		images.Manifests = append(images.Manifests, d)
	}
	d, err := l.addJSON(mediaIndex, images)
	if err != nil {
		return nil, err
	}
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.version}
	top, err := json.Marshal(index{2, mediaIndex, []descriptor{d}, nil})
	if err != nil {
		return nil, err
	}
	l.files = append(l.files, file{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		file{"index.json", 0o644, top})
	return writeTar(l.files, r.date, nil)
}

// platformImage adds the image for a platform to l.
func (r *release) platformImage(l *layout, p platform, labels map[string]string) (descriptor, error) {
	layer, err := r.layer(p)
	if err != nil {
		return descriptor{}, err
	}
	packed, err := compress(layer)
	if err != nil {
		return descriptor{}, err
	}
	c := imageConfig{Created: r.date, imagePlatform: imagePlatform{p.arch, p.os},
		History: []imageHistory{{r.date, "make image"}}}
	c.Config.User = fmt.Sprintf("%d:%[1]d", imageUser)
	c.Config.Env = []string{"PATH=/"}
	c.Config.Entrypoint = []string{"/jobwire"}
	c.Config.WorkingDir = "/data"
	c.Config.Labels = labels
	c.RootFS.Type = "layers"
	c.RootFS.DiffIDs = []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}
	config, err := l.addJSON(mediaConfig, c)
	if err != nil {
		return descriptor{}, err
	}
	return l.addJSON(mediaImage, ociImage{2, mediaImage, config, []descriptor{l.add(mediaLayer, packed)}, labels})
}

// layer returns the files of the image as a tar archive: the program, root certificates, licenses, and two folders that
// the user of the image can write to: /data, the working directory, and /tmp.
func (r *release) layer(p platform) ([]byte, error) {
	program, err := r.binary(p)
	if err != nil {
		return nil, err
	}
	licenses, err := r.licenses(p)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(r.dir, "LICENSE"))
	if err != nil {
		return nil, err
	}
	files := []file{
		{"LICENSE", 0o644, license},
		{"data/", 0o755, nil},
		{"etc/", 0o755, nil},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()},
		{"jobwire", 0o755, program},
		{"THIRD_PARTY_LICENSES", 0o644, licenses},
		{"tmp/", 0o777 | fs.ModeSticky, nil},
	}
	return writeTar(files, r.date, map[string]int{"data/": imageUser})
}

// certificates returns the root certificates of Mozilla in PEM, at the version that go.mod names: those of the build
// machine would make the image depend on it. Roots that are trusted only for older certificates are left out, because
// PEM cannot express this.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}
