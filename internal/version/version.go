// Package version identifies the build of jobwire in the output of --version and in every saved result.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// Number is the version of the source, as in "0.9.0-dev". In a build of a release it is the number of the Git tag, as
// in "0.9.0", which "make dist" sets (-ldflags -X).
var Number = "0.9.0-dev"

// The addresses of the source and of the documentation, or "" as long as they do not exist: "make publish-as" sets them.
const (
	Repository = "" // after publication: https://MODULE
	Site       = "" // after publication: https://OWNER.github.io/jobwire/
)

// commit is set by "make build" and "make dist" (-ldflags -X), because Go records the commit only if it can run git in
// the checkout.
var commit string

// Info identifies a build.
type Info struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`   // Git revision, 12 hexadecimal digits; empty if the build does not know it
	Modified bool   `json:"modified,omitempty"` // the source had changes that were not committed
	Go       string `json:"go"`                 // version of the Go toolchain, as in "go1.26"
	Platform string `json:"platform"`           // operating system and architecture, as in "linux/amd64"
}

// Get returns the identity of the running program. The commit comes from "make build" or "make dist",
// or else from what "go build" records in a Git checkout.
var Get = sync.OnceValue(func() Info {
	info := Info{Version: Number, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info.Commit, info.Modified = strings.CutSuffix(commit, "-modified")
	build, ok := debug.ReadBuildInfo()
	if !ok || commit != "" {
		return info
	}
	if build.Main.Sum != "" { // "go install PACKAGE@VERSION": the version identifies the source
		info.Version = strings.TrimPrefix(build.Main.Version, "v")
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			info.Modified = s.Value == "true"
		}
	}
	return info
})

// Schema is the version of the schemas of JSON documents. It changes if a field is removed or its meaning changes, but
// not if a field is added.
const Schema = 1

// Head has the first fields of a JSON document, about the program that wrote it. Documents embed it.
type Head struct {
	SchemaVersion int    `json:"schema_version"`
	ToolVersion   string `json:"tool_version"` // as in Jobwire.Version
	Jobwire       Info   `json:"jobwire"`
}

// NewHead returns the head of a document that this program writes.
func NewHead() Head { return Head{Schema, Get().Version, Get()} }

// String returns one line, as in "0.9.0 (commit 0123456789ab, go1.26, linux/amd64)".
func (i Info) String() string {
	commit := i.Commit
	switch {
	case commit == "":
		commit = "unknown"
	case i.Modified:
		commit += ", modified"
	}
	return fmt.Sprintf("%s (commit %s, %s, %s)", i.Version, commit, i.Go, i.Platform)
}
