package fuzzcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"jobwire/cmd/internal/cli"
	"jobwire/fuzz/report"
	"jobwire/internal/textfile"
)

// newFuzzReport returns the command that writes the report of an earlier run.
func newFuzzReport() *cobra.Command {
	var format, html string
	cmd := &cobra.Command{
		Use:   "report DIR [flags]",
		Short: "Write the report of an earlier run",
		Args:  cli.OneOrMore("expected the folder with the findings of a run: the value of --findings"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usage(fmt.Errorf("expected one folder, got %d", len(args)))
			}
			r, err := readReport(args[0])
			if err != nil {
				return err
			}
			if html != "" {
				err = cli.Create(html, func(w io.Writer) error { return report.WriteHTML(w, r) })
			}
			return errors.Join(err, report.Formats[format](cmd.OutOrStdout(), r))
		},
	}
	addReportFormat(cmd, &format)
	cmd.Flags().StringVar(&html, "html", "", "`FILE` for an HTML report")
	cli.GroupFlags(cmd, fuzzFlagGroups)
	return cmd
}

// addReportFormat adds the flag --format with the formats of reports.
func addReportFormat(cmd *cobra.Command, format *string) {
	cli.FormatFlag(cmd, format, "text", "github", "html", "json", "junit", "markdown", "sarif")
	cmd.Flags().Lookup("format").Usage += " (json: one object per line)"
}

// readReport reads the report that a run has saved in the folder with its findings.
func readReport(dir string) (*report.Report, error) {
	name := filepath.Join(dir, report.File)
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s has no report: expected the folder of --findings; fuzz saves %s at the end of a run", dir,
			report.File)
	}
	text, err := textfile.Read(name, "a report of fuzz")
	if err != nil {
		return nil, cli.Usage(err)
	}
	r, err := report.Read(text)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("%s: %w", name, err))
	}
	return r, nil
}
