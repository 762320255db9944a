package benchcmd

import (
	"errors"

	"github.com/spf13/cobra"

	"jobwire/cmd/internal/cli"
	"jobwire/loadgen/experiment"
)

// newBenchMerge returns the command "bench merge", which makes one report of the results of several load generators.
func newBenchMerge() *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "merge FILE|DIR... [flags]",
		Short: "Merge the results of processes that ran shares of one load",
		Args:  cli.OneOrMore("expected the results of the shares of a load (.json), or a folder with these files"),
		RunE:  func(cmd *cobra.Command, args []string) error { return o.merge(cmd, args) },
	}
	o.addObjectives(cmd)
	o.addOutputs(cmd)
	return cmd
}

// merge reads the results in args, merges them, checks the merged report against the objectives, and writes it to
// standard output and the files that the flags name.
func (o *benchOptions) merge(cmd *cobra.Command, args []string) error {
	if err := o.parseObjectives(); err != nil {
		return cli.Usage(err)
	}
	parts, err := experiment.ReadParts(args)
	if err != nil {
		return cli.Usage(err)
	}
	defer parts.Close()
	files, err := o.open()
	if err != nil {
		return cli.Usage(err)
	}
	defer files.discard()
	report, err := parts.Merge(o.objective, files.log)
	if err != nil {
		return cli.Usage(err)
	}
	if err := errors.Join(benchFormats[o.format](cmd.OutOrStdout(), report), files.write(report)); err != nil {
		return err
	}
	return benchStatus(nil, report)
}
