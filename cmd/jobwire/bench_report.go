package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"jobwire/loadgen"
)

// newBenchReport returns the command that shows a saved result.
func newBenchReport() *cobra.Command {
	o := &benchOptions{}
	var html string
	cmd := &cobra.Command{
		Use:   "report RESULT [flags]",
		Short: "Show a saved result",
		Args:  files("expected a saved result: a file that --out has saved"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkOutputs(); err != nil {
				return usage(err)
			}
			if len(args) > 1 {
				return usage(fmt.Errorf("expected one saved result, got %d: to compare results, run 'jobwire bench compare'", len(args)))
			}
			runs, err := readReports(args[0])
			if err != nil {
				return usage(err)
			}
			if len(runs) != 1 {
				return usage(fmt.Errorf("%s: expected the result of one run, got those of %d: run 'jobwire bench compare %[1]s'", args[0], len(runs)))
			}
			report := runs[0]
			if len(o.objective) > 0 {
				report.Judge(o.objective)
			}
			err = benchFormats[o.format](cmd.OutOrStdout(), report)
			if html != "" && err == nil {
				err = create(html, func(w io.Writer) error { return loadgen.WriteHTML(w, report) })
			}
			return errors.Join(err, benchStatus(nil, report))
		},
	}
	o.addObjectives(cmd)
	o.addFormat(cmd)
	cmd.Flags().StringVar(&html, "html", "", "`FILE` for an HTML report with charts")
	return cmd
}
