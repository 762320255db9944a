package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/cmd/internal/cli"
	"jobwire/conform/report"
	"jobwire/internal/textfile"
)

// newConformMatrix returns the command that writes a page about saved results.
func newConformMatrix() *cobra.Command {
	m := &report.Matrix{}
	var out string
	cmd := &cobra.Command{
		Use:   "matrix [NAME=]RESULT... [flags]",
		Short: "Write a page that compares saved results by requirement",
		Args:  cli.OneOrMore("expected saved results: files that 'jobwire conform PROTOCOL --format json' has written"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				if err := addResult(m, arg); err != nil {
					return cli.Usage(err)
				}
			}
			if out == "" {
				return m.WriteHTML(cmd.OutOrStdout())
			}
			return cli.Create(out, m.WriteHTML)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "`FILE` for the page (default: standard output)")
	f.StringVar(&m.FindingsURL, "findings-url", "",
		"`URL` of a page with the findings that profiles name, to which the page links")
	return cmd
}

// addResult adds the results in a file. arg is the name of the file, or NAME=FILE.
func addResult(m *report.Matrix, arg string) error {
	name, file := "", arg
	if before, after, ok := strings.Cut(arg, "="); ok {
		name, file = before, after
	}
	f, err := textfile.Open(file, "a result of 'jobwire conform --format json'")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := m.Add(f, name); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
