package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/conform"
	"jobwire/internal/target"
)

// newConformSelfTest returns the command that tests the cases.
func newConformSelfTest() *cobra.Command {
	o := &conformOptions{}
	cmd := &cobra.Command{
		Use:   "self-test PROTOCOL [flags]",
		Short: "Check that the cases detect injected faults",
	}
	onProtocol(cmd, o.runSelfTest)
	o.addSelection(cmd)
	formatFlag(cmd, &o.format, "text", "json")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "list the injected faults that each case detects")
	groupFlags(cmd, conformFlagGroups)
	return cmd
}

// errSelfTest is the error of a self-test that the user interrupted.
var errSelfTest = errors.New("the self-test was interrupted, so its report is incomplete")

// untilInterrupt calls do and returns its error. When ctx ends, it returns without waiting for do: servers in memory
// need no orderly end, and may have much to do before virtual time passes.
func untilInterrupt(ctx context.Context, do func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errSelfTest
	}
}

func (o *conformOptions) runSelfTest(cmd *cobra.Command, sys *catalog.Entry) error {
	suite, err := o.selected(sys, nil)
	switch {
	case err != nil:
		return usage(err)
	case sys.Mutants == nil:
		return usage(fmt.Errorf("there are no servers with injected faults for %s", sys.Protocol.Title))
	}
	faultless := conform.Baseline{
		Start: func(ctx context.Context) (target.Target, error) {
			return target.InMemory(ctx, "the reference server", serve(sys))
		},
		Programs: sys.Programs,
		Observe:  sys.Observe,
	}
	mutants := sys.Mutants()
	progress := newProgress(cmd.ErrOrStderr(), len(mutants))
	report := conform.SelfTest(cmd.Context(), suite, faultless, mutants, conform.SelfTestOptions{},
		func(*conform.MutantResult) { progress.step() })
	progress.clear()
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
		return errSelfTest
	}
	if !report.Passed() {
		return &exit{exitFailed, nil}
	}
	return nil
}
