package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/loadgen"
)

func newBenchMerge() *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "merge FILE|DIR... [flags]",
		Short: "Merge the results of processes that ran parts of one load",
		Args:  files("expected the .json and .hlog files of all parts of the load, or a folder with these files"),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.merge(cmd, args) },
	}
	o.addObjectives(cmd)
	o.addOutputs(cmd)
	return cmd
}

func (o *benchOptions) merge(cmd *cobra.Command, args []string) error {
	if err := o.parseObjectives(); err != nil {
		return usage(err)
	}
	var parts []*loadgen.Report
	var logs []io.Reader
	for _, arg := range args {
		names := []string{arg}
		if st, err := os.Stat(arg); err == nil && st.IsDir() {
			names = nil
			for _, kind := range []string{"*.json", "*.hlog"} {
				found, err := filepath.Glob(filepath.Join(arg, kind))
				if err != nil {
					return usage(err)
				}
				names = append(names, found...)
			}
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".hlog") {
				f, err := os.Open(name)
				if err != nil {
					return usage(err)
				}
				defer f.Close()
				logs = append(logs, f)
				continue
			}
			reports, err := readReports(name)
			if err != nil {
				return usage(err)
			}
			parts = append(parts, reports...)
		}
	}
	files, err := o.open()
	if err != nil {
		return usage(err)
	}
	defer files.discard()
	report, err := loadgen.Merge(parts, logs, files.log)
	if err != nil {
		return usage(err)
	}
	report.Check(o.objective)
	if err := errors.Join(benchFormats[o.format](cmd.OutOrStdout(), report), files.write(report)); err != nil {
		return err
	}
	return benchStatus(nil, report)
}

// latestStart is the longest time from now to the start of a run.
const latestStart = 24 * time.Hour

// parseStart parses a time of today (15:04:05) or a time in RFC 3339 format. The time must be after now, by at most
// latestStart.
func parseStart(text string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		clock, err := time.ParseInLocation(time.TimeOnly, text, now.Location())
		if err != nil {
			return at, fmt.Errorf("%q: expected a time, as 15:04:05 or 2006-01-02T15:04:05Z", text)
		}
		at = time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
	}
	switch ahead := at.Sub(now); {
	case ahead <= 0:
		return at, fmt.Errorf("%s: expected a time in the future, got one %v ago", text, -ahead.Round(time.Second))
	case ahead > latestStart:
		return at, fmt.Errorf("%s: expected a time within the next %v", text, latestStart)
	}
	return at, nil
}

// waitUntil waits until a time or until ctx is done. The zero time means now.
func waitUntil(ctx context.Context, at time.Time) error {
	if at.IsZero() {
		return ctx.Err()
	}
	t := time.NewTimer(time.Until(at))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
