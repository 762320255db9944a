package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var errEmpty = errors.New("expected a value, got an empty one")

// refuseEmpty makes the flags of a command and its subcommands refuse empty values. An empty value usually comes from a
// variable that is not set. It must not mean the same as no flag.
func refuseEmpty(cmd *cobra.Command) {
	wrap := func(f *pflag.Flag) {
		if slices.Contains(textTypes, f.Value.Type()) {
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

// textTypes are the types of flags whose values pflag accepts although they are empty.
var textTypes = []string{"string", "stringArray", "stringSlice"}

// nonEmpty returns the value of a flag, which refuses empty values.
func nonEmpty(f *pflag.Flag) pflag.Value {
	v := textValue{f.Value}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		if f.DefValue == "[]" {
			f.DefValue = "" // the help does not show it, as without the wrapper
		}
		return textList{v, list}
	}
	return v
}

// textValue is the value of a flag that is not empty, or a list of such values.
type textValue struct{ pflag.Value }

func (t textValue) Set(s string) error {
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

func (textValue) refusesEmpty() {}

// textList is a textValue that is a list.
type textList struct {
	textValue
	pflag.SliceValue
}
