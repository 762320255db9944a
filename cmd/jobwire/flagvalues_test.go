package main

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/cmd/internal/cli"
)

// TestValues tests each flag of each command: an empty value, and a number outside of its limits, is a usage error that
// names the limits, and nothing is tested. The help names the upper limit.
func TestValues(t *testing.T) {
	t.Parallel()
	flags, numbers := 0, 0
	each := func(c *cobra.Command, f *pflag.Flag) {
		flags++
		refused := []string{"", " "}
		switch limited, ok := f.Value.(cli.NumberValue); {
		case ok:
			numbers++
			limit := limited.Limit
			refused = append(refused, "-1", above(limit.High), "99999999999999999999999", "-9223372036854775808")
			refused = append(refused, "1e99", "NaN", "Inf", "x")
			for _, v := range []string{limit.Low, limit.High} {
				if err := f.Value.Set(v); err != nil {
					t.Errorf("%s: --%s %s: %v", c.CommandPath(), f.Name, v, err)
				}
			}
			if !strings.Contains(f.Usage, "at most "+limit.High) && f.Name != "seed" { // every 64-bit number is a seed
				t.Errorf("%s: the help of --%s does not name its limit: %s", c.CommandPath(), f.Name, f.Usage)
			}
		case !slices.Contains(cli.TextTypes, f.Value.Type()):
			t.Errorf("%s: --%s is not in the table of limits", c.CommandPath(), f.Name)
		}
		for _, value := range refused {
			args := append(strings.Fields(c.CommandPath())[1:], "--"+f.Name+"="+value)
			var out, errs bytes.Buffer
			status := run(t.Context(), args, strings.NewReader(""), &out, &errs)
			first, _, _ := strings.Cut(errs.String(), "\n")
			want := "--" + f.Name
			if limited, ok := f.Value.(cli.NumberValue); ok {
				want += " " + value + ": expected a "
				if !strings.Contains(first, "from "+limited.Limit.Low+" to "+limited.Limit.High) {
					t.Errorf("%q: %q does not name the limits", args, first)
				}
			}
			if status != cli.StatusUsage || !strings.Contains(first, want) || out.Len() > 0 {
				t.Errorf("%q: status %d, %q, %q", args, status, first, out.String())
			}
		}
	}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal == "" { // a flag with a value
				each(c, f)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	if flags < 100 || numbers < 50 {
		t.Errorf("only %d flags were tested, %d of them numbers", flags, numbers)
	}
}

// above returns a number or time that is slightly higher.
func above(limit string) string {
	if n, ok := new(big.Int).SetString(limit, 10); ok {
		return n.Add(n, big.NewInt(1)).String()
	}
	return limit + "1ns"
}
