package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/internal/prose"
)

// HelpTemplate prints the examples first, since most readers look for them.
const HelpTemplate = `{{with or .Long .Short}}{{wrapText . | trimTrailingWhitespaces}}

{{end}}{{if .HasExample}}Examples:
{{.Example}}

{{end}}Usage:{{if .Runnable}}{{if .HasParent}}
  {{.UseLine}}{{end}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND [flags]

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}{{end}}
{{if .HasAvailableLocalFlags}}
{{flagUsages .}}
{{end}}`

func init() {
	cobra.AddTemplateFunc("flagUsages", flagUsages)
	cobra.AddTemplateFunc("wrapText", wrapText)
}

// wrapText breaks the lines of each paragraph after at most 80 columns. Lines that begin
// with a space or a tab are left alone.
func wrapText(s string) string {
	var b, paragraph strings.Builder
	flush := func() {
		if paragraph.Len() > 0 {
			b.WriteString(prose.Wrap("", "", paragraph.String(), prose.Width) + "\n")
			paragraph.Reset()
		}
	}
	for line := range strings.Lines(s) {
		if line == "\n" || line[0] == ' ' || line[0] == '\t' {
			flush()
			b.WriteString(line)
		} else {
			paragraph.WriteString(line)
		}
	}
	flush()
	return b.String()
}

// A FlagGroup is a part of the list of flags in the help of a command.
type FlagGroup struct {
	Title string
	Names string // names of flags, separated by spaces
}

// groupAnnotation is the annotation with the position of a flag in the help and the title of its group.
const groupAnnotation = "jobwire_group"

// GroupFlags makes the help of a command list its flags in the order of groups, with
// their titles. Flags without a group come last.
func GroupFlags(cmd *cobra.Command, groups []FlagGroup) {
	for i, g := range groups {
		for j, name := range strings.Fields(g.Names) {
			if cmd.Flags().Lookup(name) != nil { // commands with fewer flags share the groups
				cmd.Flags().SetAnnotation(name, groupAnnotation, []string{fmt.Sprintf("%02d %02d", i, j), g.Title})
			}
		}
	}
}

// A flagList is a titled part of the flags of a command.
type flagList struct {
	title string
	flags *pflag.FlagSet
}

// flagLists returns the flags of a command by group, in the order of the help.
func flagLists(cmd *cobra.Command) []flagList {
	group := func(f *pflag.Flag) (place, title string) {
		if a := f.Annotations[groupAnnotation]; len(a) == 2 {
			return a[0], a[1]
		}
		return "last " + f.Name, "Flags"
	}
	var flags []*pflag.Flag
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { flags = append(flags, f) })
	slices.SortFunc(flags, func(f, g *pflag.Flag) int {
		a, _ := group(f)
		b, _ := group(g)
		return strings.Compare(a, b)
	})
	var lists []flagList
	for _, f := range flags {
		_, title := group(f)
		if len(lists) == 0 || lists[len(lists)-1].title != title {
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			set.SortFlags = false
			lists = append(lists, flagList{title, set})
		}
		lists[len(lists)-1].flags.AddFlag(withPlaceholder(f))
	}
	return lists
}

// flagUsages returns the help of a command's flags, by group, wrapped to the width of
// the terminal.
func flagUsages(cmd *cobra.Command) string {
	var b strings.Builder
	for _, l := range flagLists(cmd) {
		fmt.Fprintf(&b, "%s:\n%s\n", l.title, l.flags.FlagUsagesWrapped(Columns(cmd.OutOrStdout())))
	}
	return strings.TrimRight(b.String(), "\n")
}

// placeholders are the values in the help of flags whose usage names none, by the type of the flag.
var placeholders = map[string]string{
	"duration": "DURATION", "float64": "NUMBER", "int": "NUMBER", "int64": "NUMBER", "uint64": "NUMBER", "string": "TEXT",
}

// a shownValue is the value of a flag whose type is shown as its placeholder.
type shownValue struct {
	pflag.Value
	placeholder string
}

func (v shownValue) Type() string { return v.placeholder }

// withPlaceholder returns a flag for the help: a flag without a placeholder has that of its type.
func withPlaceholder(f *pflag.Flag) *pflag.Flag {
	name := placeholders[f.Value.Type()]
	if name == "" || strings.Contains(f.Usage, "`") {
		return f
	}
	shown := *f
	shown.Value = shownValue{f.Value, name}
	if shown.DefValue == "0s" {
		shown.DefValue = "" // not shown, as for numbers
	}
	return &shown
}
