package benchcmd

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"jobwire/cmd/internal/cli"
	"jobwire/loadgen/format"
	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
)

// addOutputs adds the flags for the format of the report and for the other files to write.
func (o *benchOptions) addOutputs(cmd *cobra.Command) {
	o.addFormat(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.out, "output", "o", "", "`FILE` for the result as JSON, which 'bench compare' and --baseline read")
	f.StringVar(&o.hlog, "hlog", "", "`FILE` for a HdrHistogram log of the latencies in each interval")
	f.StringVar(&o.hgrm, "hgrm", "", "write latency distributions to `PREFIX`.STAGE.hgrm, one file per stage")
	o.addHTML(cmd)
}

func (o *benchOptions) addHTML(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.html, "html", "", "`FILE` for an HTML report with charts")
}

func (o *benchOptions) addFormat(cmd *cobra.Command) {
	cli.FormatFlag(cmd, &o.format, "text", "json", "csv", "bench", "prometheus", "html")
}

// parseObjectives parses the objectives of --slo.
func (o *benchOptions) parseObjectives() error {
	for _, text := range o.slo {
		objective, err := report.ParseObjective(text)
		if err != nil {
			return fmt.Errorf("--slo: %w", err)
		}
		o.objective = append(o.objective, objective)
	}
	return nil
}

// benchFormats has the functions that write a report to standard output, by the value of --format.
var benchFormats = map[string]func(io.Writer, *report.Report) error{
	"text":       format.Text,
	"json":       format.JSON[*report.Report],
	"csv":        format.CSV,
	"bench":      format.GoBench,
	"prometheus": format.Prometheus,
	"html":       format.HTML,
}

// benchFiles are the files that a run writes in addition to the report on standard output.
type benchFiles struct {
	out, hlog, html *cli.TextFile // nil: not requested
	log             *latency.Log
	hgrm            string
	written         bool
}

// open creates the files. It is called before a run, so that an invalid name is reported at once.
func (o *benchOptions) open() (f *benchFiles, err error) {
	f = &benchFiles{hgrm: o.hgrm}
	for _, file := range []struct {
		name string
		to   **cli.TextFile
	}{{o.out, &f.out}, {o.hlog, &f.hlog}, {o.html, &f.html}} {
		if file.name == "" {
			continue
		}
		if *file.to, err = cli.CreateText(file.name); err != nil {
			f.discard()
			return nil, err
		}
	}
	if f.hlog != nil {
		f.log = latency.NewLog(f.hlog)
	}
	return f, nil
}

// write writes the files. The histogram log is complete before the result, so that a result that can be read has its
// log.
func (f *benchFiles) write(r *report.Report) error {
	var errs []error
	if f.hlog != nil {
		errs = append(errs, f.log.Close(), f.hlog.Close())
	}
	errs = append(errs, save(f, r, format.HTML))
	if f.hgrm != "" {
		for stage, q := range r.Latency {
			if q.Count > 0 {
				errs = append(errs, cli.Create(f.hgrm+"."+stage+".hgrm",
					func(w io.Writer) error { return format.Hgrm(w, r, stage) }))
			}
		}
	}
	return errors.Join(errs...)
}

// save writes a report to the files of --output and --html.
func save[R any](f *benchFiles, r R, asHTML func(io.Writer, R) error) error {
	f.written = true
	var errs []error
	if f.out != nil {
		errs = append(errs, format.JSON(f.out, r), f.out.Close())
	}
	if f.html != nil {
		errs = append(errs, asHTML(f.html, r), f.html.Close())
	}
	return errors.Join(errs...)
}

// discard closes and removes the files if they have not been written, so that a run that did not start leaves none.
func (f *benchFiles) discard() {
	if f.written {
		return
	}
	for _, file := range []*cli.TextFile{f.out, f.hlog, f.html} {
		if file == nil {
			continue
		}
		st, err := file.File.Stat()
		file.Close()
		if err == nil && st.Mode().IsRegular() {
			os.Remove(file.File.Name())
		}
	}
}
