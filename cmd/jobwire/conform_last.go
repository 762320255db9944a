package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/conform"
	"jobwire/internal/verdict"
)

// lastRun is what conform keeps about the runs against a target, in a file below the user's cache directory.
type lastRun struct {
	Target string     `json:"target"`
	Failed []string   `json:"failed"` // IDs of the instances that failed when they ran last
	Causes [][]string `json:"causes"` // IDs of the instances, for each cause of the last report that has causes
}

// lastRunFile returns the name of the file about a target.
func (o *conformOptions) lastRunFile(sys *catalog.Entry, subj subject) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	words := append([]string{subj.target.Name(sys)}, o.programs...)
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return filepath.Join(dir, "jobwire", "conform", fmt.Sprintf("%s-%x.json", sys.Protocol.Name, sum[:8])), nil
}

// readLastRun returns what is kept about a target. The error is fs.ErrNotExist if there is nothing.
func (o *conformOptions) readLastRun(sys *catalog.Entry, subj subject) (last lastRun, err error) {
	name, err := o.lastRunFile(sys, subj)
	if err != nil {
		return last, err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return last, err
	}
	if err := json.Unmarshal(text, &last); err != nil {
		return last, fmt.Errorf("%s: %w", name, err)
	}
	return last, nil
}

// keepLastRun keeps which cases failed, and the causes. Cases that did not run keep their state.
func (o *conformOptions) keepLastRun(sys *catalog.Entry, subj subject, r *conform.Report) error {
	if r.Ran() == 0 {
		return nil
	}
	name, err := o.lastRunFile(sys, subj)
	if err != nil {
		return err
	}
	last, _ := o.readLastRun(sys, subj) // if there is none, or it is damaged, this run is the first one
	ran := map[string]bool{}
	var failed []string
	for _, res := range r.Results {
		if res.Verdict == verdict.NotRun || res.Verdict == verdict.Unreachable {
			continue
		}
		ran[res.Case.ID] = true
		if res.Verdict.FailsRun() || res.Verdict == verdict.Inferred {
			failed = append(failed, res.Case.ID)
		}
	}
	for _, id := range last.Failed {
		if !ran[id] {
			failed = append(failed, id)
		}
	}
	last.Target, last.Failed = subj.target.Name(sys), failed
	if causes := r.Causes(); len(causes) > 0 {
		last.Causes = nil
		for _, c := range causes {
			last.Causes = append(last.Causes, c.IDs())
		}
	}
	text, err := json.Marshal(last)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	part := fmt.Sprintf("%s.%d", name, os.Getpid())
	err = cli.Create(part, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		os.Remove(part)
	}
	return err
}

// causePrefix precedes the number of a cause in a value of --run.
const causePrefix = "cause:"

// fromLastRun replaces "cause:N" in the values of --run by the IDs of the cases of that cause in the last report, and
// returns the IDs of the cases that --failed selects, or nil without --failed.
func (o *conformOptions) fromLastRun(sys *catalog.Entry, subjects []subject) (failed map[string]bool, err error) {
	var globs []string
	var causes []int
	for _, text := range o.run {
		number, ok := strings.CutPrefix(text, causePrefix)
		if !ok {
			globs = append(globs, text)
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--run %s: expected %sN, where N is the number of a cause in the last report",
				text, causePrefix)
		}
		causes = append(causes, n)
	}
	if !o.failed && causes == nil {
		return nil, nil
	}
	flag := "--failed"
	if causes != nil {
		flag = fmt.Sprintf("--run %s%d", causePrefix, causes[0])
	}
	if len(subjects) != 1 {
		return nil, fmt.Errorf("%s needs one target, got %d profiles", flag, len(subjects))
	}
	name := subjects[0].target.Name(sys)
	last, err := o.readLastRun(sys, subjects[0])
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no earlier run of %s against %s", flag, sys.Protocol.Name, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	for _, n := range causes {
		if n > len(last.Causes) {
			return nil, fmt.Errorf("--run %s%d: the last report about %s has %d causes", causePrefix, n, name, len(last.Causes))
		}
		o.ids = append(o.ids, last.Causes[n-1]...)
	}
	o.run = globs
	if !o.failed {
		return nil, nil
	}
	if len(last.Failed) == 0 {
		return nil, fmt.Errorf("--failed: no case failed in the last run of %s against %s", sys.Protocol.Name, name)
	}
	failed = map[string]bool{}
	for _, id := range last.Failed {
		failed[id] = true
	}
	return failed, nil
}
