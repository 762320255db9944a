package benchcmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"jobwire/cmd/internal/cli"
	"jobwire/internal/textfile"
	"jobwire/loadgen/experiment"
	"jobwire/loadgen/format"
	"jobwire/loadgen/report"
)

// newBenchReport returns the command that shows a saved result.
func newBenchReport() *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "report RESULT [flags]",
		Short: "Show a saved result",
		Args:  cli.OneOrMore("expected a saved result: a file that --output has saved"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.parseObjectives(); err != nil {
				return cli.Usage(err)
			}
			if len(args) > 1 {
				return cli.Usage(fmt.Errorf("expected one saved result, got %d: to compare results, run 'jobwire bench compare'",
					len(args)))
			}
			text, err := textfile.Read(args[0], report.SavedResult)
			if err != nil {
				return cli.Usage(err)
			}
			if s := experiment.ParseSearch(text); s != nil {
				return o.reportSearch(cmd, s)
			}
			runs, err := report.ReadReports(bytes.NewReader(text))
			if err != nil {
				return cli.Usage(fmt.Errorf("%s: %w", args[0], err))
			}
			if len(runs) != 1 {
				return cli.Usage(fmt.Errorf("%s: expected the result of one run, got those of %d: run 'jobwire bench compare %[1]s'",
					args[0], len(runs)))
			}
			report := runs[0]
			if len(o.objective) > 0 {
				report.Check(o.objective)
			}
			err = benchFormats[o.format](cmd.OutOrStdout(), report)
			if o.html != "" && err == nil {
				err = cli.Create(o.html, func(w io.Writer) error { return format.HTML(w, report) })
			}
			return errors.Join(err, benchStatus(nil, report))
		},
	}
	o.addObjectives(cmd)
	o.addFormat(cmd)
	o.addHTML(cmd)
	return cmd
}

// reportSearch shows a saved search.
func (o *benchOptions) reportSearch(cmd *cobra.Command, s *experiment.SearchReport) error {
	switch {
	case searchFormats[o.format] == nil:
		return cli.Usage(fmt.Errorf("--format %s: expected json or text for the result of a search", o.format))
	case len(o.slo) > 0:
		return cli.Usage(errors.New("--slo has no effect on the result of a search"))
	}
	err := searchFormats[o.format](cmd.OutOrStdout(), s)
	if o.html != "" && err == nil {
		err = cli.Create(o.html, func(w io.Writer) error { return format.SearchHTML(w, s) })
	}
	return errors.Join(err, verdictStatus(s.Verdict()))
}
