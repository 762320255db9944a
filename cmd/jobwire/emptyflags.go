package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var errEmpty = errors.New("expected a value, got an empty one")

// refuseEmpty makes the flags of a command and its subcommands refuse empty values. An empty value usually comes from a variable that
// is not set; it must not mean the same as no flag.
func refuseEmpty(cmd *cobra.Command) {
	wrap := func(f *pflag.Flag) {
		if slices.Contains(pflagTexts, f.Value.Type()) {
			if _, wrapped := f.Value.(interface{ refusesEmpty() }); !wrapped {
				f.Value = nonEmpty(f)
			}
		}
	}
	cmd.Flags().VisitAll(wrap)
	cmd.PersistentFlags().VisitAll(wrap)
	for _, c := range cmd.Commands() {
		refuseEmpty(c)
	}
}

// pflagTexts are the types of flags that accept empty values.
var pflagTexts = []string{"string", "stringArray", "stringSlice"}

// nonEmpty returns the value of a flag, which refuses empty values.
func nonEmpty(f *pflag.Flag) pflag.Value {
	v := text{f.Value}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		if f.DefValue == "[]" {
			f.DefValue = "" // the help does not show it, as without the wrapper
		}
		return texts{v, list}
	}
	return v
}

// text is a value that is not empty, or a list of such values.
type text struct{ pflag.Value }

func (t text) Set(s string) error {
	parts := []string{s}
	if t.Type() == "stringSlice" {
		parts = strings.Split(s, ",")
	}
	for _, p := range parts {
		if strings.TrimSpace(p) == "" {
			return errEmpty
		}
	}
	return t.Value.Set(s)
}

func (text) refusesEmpty() {}

// texts is a text that is a list.
type texts struct {
	text
	pflag.SliceValue
}
