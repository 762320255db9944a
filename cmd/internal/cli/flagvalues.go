package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var errEmpty = errors.New("expected a value, got an empty one")

// CheckValues makes the flags of a command and its subcommands refuse empty texts, and numbers outside of their limits.
// An empty value usually comes from a variable that is not set. It must not mean the same as no flag.
func CheckValues(cmd *cobra.Command) {
	wrap := func(f *pflag.Flag) {
		switch f.Value.(type) {
		case TextValue, textList, NumberValue: // also a flag of a parent command
			return
		}
		if f.DefValue == "[]" {
			f.DefValue = "" // the help does not show it, as without the wrapper
		}
		if slices.Contains(TextTypes, f.Value.Type()) {
			f.Value = nonEmpty(f)
		} else if limit, ok := numberLimits[f.Name]; ok && f.NoOptDefVal == "" {
			if f.Name == "duration" && cmd.HasParent() && cmd.Parent().Name() == "bench" {
				limit.Low = "1ms" // the default is not 0
			}
			f.Value = NumberValue{f.Value, limit}
			if f.Name != "seed" {
				f.Usage += "; at most " + limit.High
			}
		}
	}
	cmd.Flags().VisitAll(wrap)
	cmd.PersistentFlags().VisitAll(wrap)
	for _, c := range cmd.Commands() {
		CheckValues(c)
	}
}

// TextTypes are the types of flags whose values pflag accepts although they are empty.
var TextTypes = []string{"string", "stringArray", "stringSlice"}

// nonEmpty returns the value of a flag, which refuses empty values.
func nonEmpty(f *pflag.Flag) pflag.Value {
	v := TextValue{f.Value}
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return textList{v, list}
	}
	return v
}

// TextValue is the value of a flag that is not empty, or a list of such values.
type TextValue struct{ pflag.Value }

// Set sets the flag. It returns an error if the value, or an element of a list, is empty or consists of spaces.
func (t TextValue) Set(s string) error {
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

// textList is a textValue that is a list.
type textList struct {
	TextValue
	pflag.SliceValue
}

// numberLimit has the lowest and the highest value of a flag that is a number, a time or a list of numbers.
type numberLimit struct{ Low, High string }

// Limits of times: of a run, and of one step of a run.
var (
	timeOfRun  = numberLimit{"0s", "720h"}
	timeOfStep = numberLimit{"0s", "1h"}
	timeLimit  = numberLimit{"1ms", "1h"}
)

// numberLimits are the limits of flags by name, the same in all commands. Higher numbers need more memory, connections
// or processes than a machine has.
var numberLimits = map[string]numberLimit{
	"allow-loss":    timeOfStep,
	"batch":         {"1", "65536"},
	"budget":        timeOfRun,
	"clients":       {"1", "19999"},
	"count":         {"0", "10000000000"},
	"duration":      timeOfRun,
	"fast-clock":    {"0", "100"}, // with a higher factor, a short delay would be longer than most time limits
	"functions":     {"1", "65536"},
	"grabs":         {"0", "65536"},
	"interval":      timeLimit,
	"keep-results":  timeOfRun,
	"kill":          {"0.001", "1000"},
	"kill-after":    timeLimit,
	"kills":         {"1", "10000"},
	"max-data":      {"0", "1073741824"},
	"max-in-flight": {"0", "1048576"},
	"memory":        {"0", "1048576"},
	"minimize":      timeLimit,
	"parallel":      {"1", "64"},
	"pid":           {"1", "2147483647"},
	"port":          {"1", "65535"},
	"ramp":          timeOfStep,
	"reconnect":     {"0.001", "10000"},
	"retries":       {"0", "1000000"},
	"rounds":        {"1", "1000"},
	"seed":          {"0", "18446744073709551615"},
	"settle":        timeLimit,
	"share-index":   {"0", "999"},
	"shares":        {"1", "1000"},
	"think":         timeOfStep,
	"timeout":       timeLimit,
	"warmup":        timeOfStep,
	"window":        {"1", "1048576"},
	"work":          timeOfStep,
	"workers":       {"1", "19999"},
	"zipf":          {"0", "100"},
}

// errLimit is the error about a value outside of its limits.
type errLimit struct {
	numberLimit
	kind string
}

func (e errLimit) Error() string {
	return fmt.Sprintf("expected %s from %s to %s", e.kind, e.Low, e.High)
}

// NumberValue is the value of a flag within its limits.
type NumberValue struct {
	pflag.Value
	Limit numberLimit
}

// Set sets the flag. It returns an error that states the limits if the text is not a number or time, or if it, or an
// element of a list, is outside of the limits.
func (n NumberValue) Set(s string) error {
	kind := "a number"
	if n.Type() == "duration" {
		kind = "a time"
	}
	if n.Value.Set(s) != nil {
		return errLimit{n.Limit, kind}
	}
	low, high := numeric(n.Limit.Low), numeric(n.Limit.High)
	for text := range strings.SplitSeq(strings.Trim(n.String(), "[]"), ",") {
		if v := numeric(text); !(v >= low && v <= high) {
			return errLimit{n.Limit, kind}
		}
	}
	return nil
}

// numeric returns the value of a number, or of a time in nanoseconds.
func numeric(text string) float64 {
	if d, err := time.ParseDuration(text); err == nil && d != 0 {
		return float64(d)
	}
	v, _ := strconv.ParseFloat(strings.TrimSuffix(text, "s"), 64)
	return v
}
