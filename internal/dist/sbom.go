package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A bom is a software bill of materials (SBOM) in the format CycloneDX 1.6 (https://cyclonedx.org/docs/1.6/json/).
type bom struct {
	Format      string      `json:"bomFormat"`
	SpecVersion string      `json:"specVersion"`
	Version     int         `json:"version"`
	Metadata    bomMetadata `json:"metadata"`
	Components  []component `json:"components"`
}

type bomMetadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// sbom returns the bill of materials of a program. Its components are the modules that the Go linker recorded in the
// program. The hash of a module is that of go.sum, as in other tools.
func (r *release) sbom(program []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(program)
	apache := license{}
	apache.License.ID = "Apache-2.0"
	self := component{
		Type: "application", Ref: "jobwire", Name: "jobwire", Version: r.version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, Licenses: []license{apache},
		Properties: []property{{"jobwire:commit", r.commit}},
	}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" || s.Key == "CGO_ENABLED" {
			self.Properties = append(self.Properties, property{"jobwire:build:" + s.Key, s.Value})
		}
	}
	doc := bom{"CycloneDX", "1.6", 1, bomMetadata{r.date.Format(time.RFC3339), self},
		[]component{goModule("std", goVersion(info.GoVersion))}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := goModule(m.Path, m.Version)
		if h1, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
			raw, err := base64.StdEncoding.DecodeString(h1)
			if err != nil {
				return nil, fmt.Errorf("hash of %s: %w", m.Path, err)
			}
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(raw)}}
		}
		doc.Components = append(doc.Components, c)
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	return append(out, '\n'), err
}

func goModule(path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: "library", Ref: purl, Name: path, Version: version, PURL: purl}
}

// goVersion returns the number of a version of Go, as in "1.26.0", without experiments that the toolchain enables.
func goVersion(v string) string {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "go"), "-X:")
	return v
}
