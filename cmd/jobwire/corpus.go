package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec/vectors"
)

// newCorpus returns the command "corpus", whose arguments after the protocol are the names of the test vectors to
// print.
func newCorpus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "corpus PROTOCOL [NAME...]",
		Short: "List or print the test vectors of a protocol",
	}
	connect.ProtocolCommandWith(cmd, connect.ProtocolCompleter(vectorChoices), showCorpus)
	cmd.AddCommand(newCorpusAdd())
	return cmd
}

// showCorpus prints the selected test vectors in full. If none is selected, it lists the names of all vectors by file.
func showCorpus(cmd *cobra.Command, sys *catalog.Entry, selected []string) error {
	all, err := vectors.Read(sys.Protocol)
	if err != nil {
		return err
	}
	out, file := cmd.OutOrStdout(), ""
	for _, v := range all {
		if len(selected) > 0 {
			break
		}
		if v.File != file {
			file = v.File
			fmt.Fprintln(out, file)
		}
		fmt.Fprintf(out, "  %-40s %s\n", v.Name, v.About())
	}
	for _, name := range selected {
		found := false
		for _, v := range all {
			if v.Name == name {
				found = true
				if err := v.Write(out); err != nil {
					return err
				}
			}
		}
		if !found {
			return cli.Usage(fmt.Errorf("expected the name of a test vector of %s, got %q: to list the names, run 'jobwire corpus %s'", sys.Protocol.Title, name, sys.Protocol.Name))
		}
	}
	return nil
}
