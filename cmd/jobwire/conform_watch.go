package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/internal/target"
)

// watchInterval is the time between two looks at the files of --watch.
const watchInterval = 200 * time.Millisecond

// watched has the files of --watch, and what shows that they have changed: their sizes and times.
type watched map[string]string

// watchRuns runs the cases, and again whenever a file has changed, until an interrupt. It returns the result of the
// last run.
func (o *conformOptions) watchRuns(cmd *cobra.Command, sys *catalog.Entry) error {
	paths, err := o.watchedPaths()
	if err != nil {
		return cli.Usage(err)
	}
	for n := 1; ; n++ {
		before := readWatched(paths)
		err := o.once(cmd, sys)
		if cmd.Context().Err() != nil {
			return err
		}
		result := "all passed"
		if err != nil {
			result = err.Error()
			if e := (*cli.Error)(nil); errors.As(err, &e) && n == 1 && e.Status == cli.StatusUsage {
				return err
			}
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "\njobwire: run %d ended at %s: %s; waiting for a change of %s\n",
			n, time.Now().Format(time.TimeOnly), result, strings.Join(paths, ", "))
		changed := before.wait(cmd.Context(), paths)
		if changed == "" {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s has changed: run %d\n\n", changed, n+1)
	}
}

// watchedPaths returns the files and folders of --watch, and the files that the command line of --exec names, such
// as the program.
func (o *conformOptions) watchedPaths() ([]string, error) {
	if o.target.Exec == "" {
		return nil, errors.New("--watch needs --exec: conform cannot start the other servers again after a change")
	}
	for _, path := range o.watch {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("--watch: %w", err)
		}
	}
	words, err := target.Split(o.target.Exec)
	if err != nil {
		return nil, err
	}
	paths := slices.Clone(o.watch)
	for i, word := range words {
		if program, err := exec.LookPath(word); err == nil && i == 0 {
			word = program
		}
		if st, err := os.Stat(word); err == nil && st.Mode().IsRegular() && !slices.Contains(paths, word) {
			paths = append(paths, word)
		}
	}
	return paths, nil
}

// readWatched returns the state of the files, and of all files in the folders. Files whose names begin with a dot do
// not count in folders.
func readWatched(paths []string) watched {
	all := watched{}
	for _, path := range paths {
		filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			hidden := name != path && strings.HasPrefix(filepath.Base(name), ".")
			switch {
			case err != nil || entry.IsDir() && !hidden:
				return nil
			case hidden && entry.IsDir():
				return fs.SkipDir
			case hidden:
				return nil
			}
			if st, err := os.Stat(name); err == nil {
				all[name] = fmt.Sprint(st.Size(), st.ModTime().UnixNano())
			}
			return nil
		})
	}
	return all
}

// wait waits until a file has changed and none changes any more, and returns its name, or "" when ctx is done. A
// file that is missing is about to be written again.
func (w watched) wait(ctx context.Context, paths []string) string {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	last := w
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-ticker.C:
		}
		now := readWatched(paths)
		settled := maps.Equal(now, last)
		for _, path := range paths {
			_, err := os.Stat(path)
			settled = settled && err == nil
		}
		if name := w.different(now); settled && name != "" {
			return name
		}
		last = now
	}
}

// different returns the first file that differs, or "".
func (w watched) different(now watched) string {
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if w[name] != now[name] {
			return name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if now[name] == "" {
			return name
		}
	}
	return ""
}
