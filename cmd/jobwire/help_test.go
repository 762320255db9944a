package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelpLayout checks that the help of each command has at most 80 columns and no two empty lines in a row.
func TestHelpLayout(t *testing.T) {
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		var out bytes.Buffer
		if status := run(t.Context(), append(strings.Fields(c.CommandPath())[1:], "--help"), nil, &out, &out); status != 0 || out.Len() == 0 {
			t.Errorf("%s --help: status %d: %s", c.CommandPath(), status, out.String())
		}
		last := "text"
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := len([]rune(line)); n > 80 && !strings.Contains(line, "://") {
				t.Errorf("%s --help: %d columns: %s", c.CommandPath(), n, line)
			}
			if line == "" && last == "" {
				t.Errorf("%s --help: two empty lines", c.CommandPath())
			}
			last = line
		}
		for _, sub := range c.Commands() {
			if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
				check(sub)
			}
		}
	}
	check(newRoot())
}
