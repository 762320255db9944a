// Command dist builds the container image of jobwire from the current folder, which is the root of the repository, and
// lists the licenses of what the program contains. "make image" and "make manual" run it. Two builds of a commit with
// one version of Go give the same bytes, in any folder and on any platform. The program ko, which "make dist" could run
// beside goreleaser, cannot do this: it pulls a base image from a registry.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"jobwire/internal/version"
)

// main writes the container image or the licenses for a release, as the flags say.
func main() {
	image := flag.String("image", "", "write an OCI archive with the container image to `FILE`")
	licenses := flag.String("licenses", "", "write the licenses of the modules in the program, on all platforms, to `FILE`")
	platforms := flag.String("platforms", "", "build the image only for these `PLATFORMS`, such as linux/amd64 (default: all)")
	flag.Parse()
	if err := run(*image, *licenses, *platforms); err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}

// The platforms of the archives, as in .goreleaser.yaml, and of the image.
const (
	archivePlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64,freebsd/amd64,freebsd/arm64"
	imagePlatforms   = "linux/amd64,linux/arm64"
)

// run writes the file of one of the first two arguments, which are names of files; the other one must be "". The
// working folder must be a checkout of jobwire.
func run(image, licenses, platforms string) error {
	if flag.NArg() > 0 || (image == "") == (licenses == "") {
		return errors.New("expected either -image FILE or -licenses FILE, and no arguments")
	}
	r, err := checkout(".")
	if err != nil {
		return err
	}
	if licenses != "" {
		all, err := parsePlatforms("", archivePlatforms)
		if err != nil {
			return err
		}
		text, err := r.licenses(all...)
		if err != nil {
			return err
		}
		return os.WriteFile(licenses, text, 0o666)
	}
	fmt.Printf("jobwire %s, commit %s of %s, %s\n", r.version, r.commit, r.date.Format(time.DateOnly), runtime.Version())
	targets, err := parsePlatforms(platforms, imagePlatforms)
	if err != nil {
		return err
	}
	data, err := r.image(targets)
	if err != nil {
		return err
	}
	return os.WriteFile(image, data, 0o666)
}

// A platform is an operating system and an architecture, as in GOOS and GOARCH.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// parsePlatforms parses a list such as "linux/amd64,darwin/arm64". All of it must be in the list all; "" stands for
// all.
func parsePlatforms(list, all string) ([]platform, error) {
	if list == "" {
		list = all
	}
	var found []platform
	for name := range strings.SplitSeq(list, ",") {
		if !strings.Contains(","+all+",", ","+name+",") {
			return nil, fmt.Errorf("platform %q: expected one of %s", name, all)
		}
		goos, arch, _ := strings.Cut(name, "/")
		found = append(found, platform{goos, arch})
	}
	return found, nil
}

// A release is a commit to build.
type release struct {
	dir     string    // the source
	version string    // as in "0.9.0"
	commit  string    // as in internal/version; "" if it is not known
	date    time.Time // of the commit; every file has this time
}

// checkout returns the release of the source in dir. The version is that of a tag vVERSION at the commit, or else that
// of internal/version. The date is that of the commit, or the value of SOURCE_DATE_EPOCH in seconds since 1970. Without
// Git, SOURCE_DATE_EPOCH must be set.
func checkout(dir string) (*release, error) {
	r := &release{dir: dir, version: version.Number}
	var gitErr error
	git := func(args ...string) string {
		out, err := r.command(nil, "git", args...)
		if err != nil && gitErr == nil {
			gitErr = err
		}
		return strings.TrimSpace(string(out))
	}
	epoch := git("log", "-1", "--format=%ct")
	r.commit = git("describe", "--always", "--abbrev=12", "--exclude", "*", "--dirty=-modified")
	tags := git("tag", "--points-at", "HEAD", "--list", "v*")
	if e := os.Getenv("SOURCE_DATE_EPOCH"); e != "" {
		epoch = e
	} else if gitErr != nil {
		return nil, fmt.Errorf("%w; to build without Git, set SOURCE_DATE_EPOCH", gitErr)
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("date of the source: expected seconds since 1970, got %q", epoch)
	}
	r.date = time.Unix(seconds, 0).UTC()
	if tags != "" {
		r.version, err = releaseVersion(version.Number, strings.Fields(tags))
	}
	return r, err
}

// releaseVersion returns the version of the tags of a commit. Tags are "v" and the version of the source, without
// "-dev", and may have a suffix such as "-rc1".
func releaseVersion(source string, tags []string) (string, error) {
	if len(tags) > 1 {
		return "", fmt.Errorf("the commit has several tags: %s", strings.Join(tags, ", "))
	}
	number := strings.TrimSuffix(source, "-dev")
	v := strings.TrimPrefix(tags[0], "v")
	if v != number && !strings.HasPrefix(v, number+"-") {
		return "", fmt.Errorf("tag %s: expected v%s, because internal/version has %s", tags[0], number, source)
	}
	return v, nil
}

// command runs a program in the folder of the source, with additional environment variables, and returns its output.
func (r *release) command(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = r.dir
	cmd.Env = append(cmd.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
