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
		Use:   "merge FILE|FOLDER... [flags]",
		Short: "Make one result of those of several processes",
		Long: `merge puts together what processes with bench --share have saved with --out and --hlog:
counts add up, and so do histograms, by stage and interval. Percentiles come of those, never of
other percentiles. All shares must be there, each with its report (.json) and its log (.hlog).`,
		Example: `  jobwire bench merge results/
  jobwire bench merge 1.json 1.hlog 2.json 2.hlog --html run.html --slo 'p99<5ms'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("merge takes the .json and .hlog files of all shares, or a folder of them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.merge(cmd, args) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.slo, "slo", nil, "an `OBJECTIVE`, as 'p99<5ms': exit 1 if it is broken; may be repeated")
	o.addOutputs(cmd)
	return cmd
}

func (o *benchOptions) merge(cmd *cobra.Command, args []string) error {
	if err := o.checkOutputs(); err != nil {
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
	report.Judge(o.objective)
	if err := errors.Join(benchFormats[o.format](cmd.OutOrStdout(), report), files.write(report)); err != nil {
		return err
	}
	return benchStatus(nil, report)
}

// latestStart is how far ahead a run can be set.
const latestStart = 24 * time.Hour

// parseStart reads a time of day, or a whole one, that is still to come.
func parseStart(text string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		clock, err := time.ParseInLocation(time.TimeOnly, text, now.Location())
		if err != nil {
			return at, fmt.Errorf("%q is no time: want 15:04:05 or 2006-01-02T15:04:05Z", text)
		}
		at = time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, now.Location())
	}
	switch ahead := at.Sub(now); {
	case ahead <= 0:
		return at, fmt.Errorf("%s was %v ago", text, -ahead.Round(time.Second))
	case ahead > latestStart:
		return at, fmt.Errorf("%s is more than %v ahead", text, latestStart)
	}
	return at, nil
}

// waitUntil waits for a time; the zero time is now.
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
