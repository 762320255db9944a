package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/conform/selftest"
	"jobwire/internal/target"
)

// newConformSelfTest returns the command that tests the cases.
func newConformSelfTest() *cobra.Command {
	o := &conformOptions{}
	cmd := &cobra.Command{
		Use:   "self-test PROTOCOL [flags]",
		Short: "Check that the cases detect injected faults",
	}
	connect.ProtocolCommand(cmd, o.runSelfTest)
	o.addSelection(cmd)
	cli.FormatFlag(cmd, &o.format, "text", "json")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "list the injected faults that each case detects")
	cli.GroupFlags(cmd, conformFlagGroups)
	return cmd
}

// runSelfTest runs the suite against the reference server, which must pass, and against each mutant, which must fail
// exactly the cases that its KilledBy names. It returns an error with StatusFailed if a result differs, or if no mutant
// fails a case.
func (o *conformOptions) runSelfTest(cmd *cobra.Command, sys *catalog.Entry) error {
	suite, err := o.selected(sys, nil)
	switch {
	case err != nil:
		return cli.Usage(err)
	case sys.Mutants == nil:
		return cli.Usage(fmt.Errorf("there are no servers with injected faults for %s", sys.Protocol.Title))
	}
	faultless := selftest.Baseline{
		Start: func(ctx context.Context) (target.Target, error) {
			return target.InMemory(ctx, "the reference server", connect.Builtin(sys))
		},
		Programs: sys.Programs,
		Observe:  sys.Observe,
	}
	mutants := sys.Mutants()
	progress := cli.NewProgress(cmd.ErrOrStderr(), len(mutants))
	report := selftest.Run(cmd.Context(), suite, faultless, mutants, selftest.Options{},
		func(*selftest.MutantResult) { progress.Step() })
	progress.Clear()
	out := cmd.OutOrStdout()
	if o.format == "json" {
		err = report.WriteJSON(out)
	} else {
		err = report.WriteText(out, o.verbose)
	}
	if err != nil {
		return err
	}
	if cmd.Context().Err() != nil {
		return cli.ErrSelfTest
	}
	if !report.Passed() {
		return &cli.Error{Status: cli.StatusFailed}
	}
	return nil
}
