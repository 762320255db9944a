package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestEmptyValues tests that each flag of each command refuses an empty value, before anything is tested.
func TestEmptyValues(t *testing.T) {
	flags := 0
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal != "" { // a flag without a value
				return
			}
			flags++
			for _, value := range []string{"", " "} {
				args := append(strings.Fields(c.CommandPath())[1:], "--"+f.Name+"="+value)
				var out, errs bytes.Buffer
				status := run(t.Context(), args, strings.NewReader(""), &out, &errs)
				first, _, _ := strings.Cut(errs.String(), "\n")
				if status != exitUsage || !strings.Contains(first, "--"+f.Name) || out.Len() > 0 {
					t.Errorf("%q: status %d, %q, %q", args, status, first, out.String())
				}
			}
		})
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(newRoot())
	if flags < 100 {
		t.Errorf("only %d flags were tested", flags)
	}
}
