// Command jobwire tests servers, clients and workers of job queues against the specification of their protocol, fuzzes
// servers, measures them under load, and decodes captures.
//
// README.md and docs/README.md explain its use, and 'jobwire help COMMAND' describes the flags of each command. The
// file of a command (conform.go, fuzz.go) parses flags and prints results; the packages of the module do the work.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"jobwire/internal/prose"
	"jobwire/internal/target"
	"jobwire/internal/textfile"
	"jobwire/internal/version"
)

// Exit statuses, the same for every command.
const (
	exitOK          = 0 // every check passed
	exitFailed      = 1 // a check failed, or the command could not do its work
	exitUsage       = 2 // the command line, or the contents of a file that it names, is invalid
	exitUnreachable = 3 // the target could not be reached, or crashed
	exitInvalid     = 4 // the run does not show whether the target is correct
)

// exit is an error that sets the exit status. A nil err is not printed: the
// command has already reported what failed.
type exit struct {
	status int
	err    error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage marks an error that the user can correct on the command line or in a file.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exit{exitUsage, err}
}

// gcPercent is the GC percentage (GOGC) of all commands. They keep little memory, so that with the default of 100
// collections take up to a fifth of the processor time of a self-test.
const gcPercent = 400

// softMemory is the soft memory limit in bytes of commands that keep little. Near it, the garbage collector runs more
// often, so that the buffers of large messages are not kept until the next collection.
const softMemory = 160 << 20

// A command must end within endTime after an interrupt. Commands end within two seconds, but on a busy machine a report
// takes longer to write, and must not be lost. A command that waits for input, which it cannot interrupt, has nothing
// to report yet, and ends after inputTime.
const (
	inputTime = time.Second
	endTime   = 10 * time.Second
)

// alone is set in a process that runs one command. Tests run several commands in one process.
var alone bool

// tuneMemory sets the soft memory limit in bytes and the GC percentage of the process for its command. The environment
// variables GOMEMLIMIT and GOGC come first.
func tuneMemory(limit int64, percent int) {
	if alone && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
	if alone && os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

func main() {
	alone = true
	tuneMemory(math.MaxInt64, gcPercent)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	// a closed pipe is an error of a write, so that servers are stopped
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	status := make(chan int, 1)
	go func() { status <- run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }()
	select {
	case n := <-status:
		os.Exit(n)
	case <-ctx.Done():
	}
	for waited := inputTime; ; waited += inputTime {
		select {
		case n := <-status:
			os.Exit(n)
		case <-time.After(inputTime):
		}
		if textfile.Waiting() || waited >= endTime {
			fmt.Fprintf(os.Stderr, "jobwire: interrupted: the command did not end within %v\n", waited)
			os.Exit(exitFailed)
		}
	}
}

// run executes a command line and returns its exit status. If the reader of standard output or standard error closes
// it, the command ends as after an interrupt.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	root := newRoot()
	out, e := newOutput(stdout), newOutput(stderr)
	defer out.Close()
	defer e.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out.to.gone, e.to.gone = cancel, cancel
	stderr = e
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		plainUsages(root)
	}
	started := false
	onStart(root, func() { started = true })
	cmd, err := root.ExecuteContextC(ctx)
	defer func() {
		if err := keyLogError(cmd); err != nil {
			fmt.Fprintf(stderr, "jobwire: %v\n", err)
			status = exitFailed
		}
	}()
	if err := out.to.failed(); err != nil {
		fmt.Fprintf(stderr, "jobwire: cannot write: %v\n", err)
		return exitFailed
	}
	if errors.Is(e.to.failed(), syscall.EPIPE) {
		return exitFailed // and nothing can be printed
	}
	if err == nil {
		return exitOK
	}
	status = exitFailed
	var known *exit
	switch {
	case errors.As(err, &known):
		status = known.status
		if known.err == nil {
			if status == exitUnreachable && ctx.Err() != nil {
				return exitFailed // interrupted; the target may be reachable
			}
			return status
		}
	case errors.Is(err, target.ErrUnreachable):
		status = exitUnreachable
	case !started:
		status = exitUsage // cobra rejected the command line
	}
	if ctx.Err() != nil && (status == exitUnreachable || errors.Is(err, context.Canceled)) {
		if err.Error() == context.Canceled.Error() {
			err = errors.New("nothing is complete")
		}
		fmt.Fprintf(stderr, "jobwire: interrupted: %v\n", err)
		return exitFailed // the target may be reachable
	}
	var refused syscall.Errno
	if status == exitUsage && errors.As(err, &refused) {
		status = exitFailed // the operating system rejected it, as for a file that does not exist
	}
	fmt.Fprintf(stderr, "jobwire: %v\n", err)
	if cmd.Name() == "help" {
		cmd = root
	}
	if status == exitUsage {
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", cmd.CommandPath())
	}
	return status
}

// onStart calls f when the command line is accepted and the command begins to run.
func onStart(cmd *cobra.Command, f func()) {
	if runE := cmd.RunE; runE != nil {
		cmd.RunE = func(c *cobra.Command, args []string) error {
			f()
			return runE(c, args)
		}
	}
	for _, c := range cmd.Commands() {
		onStart(c, f)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "jobwire",
		Short:         "Test, fuzz and load job queues",
		Version:       version.Get().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("unknown command %q%s", args[0], suggestion(args[0], commandNames(c)))
		},
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return checkExclusive(c.Flags()) },
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(newServe(), newConform(), newAudit(), newBench(), newFuzz(), newPlay(), newEncode(), newDecode(),
		newExport(), newRules(), newCorpus(), newVersion(), newMan())
	root.SetHelpCommand(newHelp())
	root.SetVersionTemplate("jobwire {{.Version}}\n")
	root.SetFlagErrorFunc(suggestFlag)
	root.SetHelpTemplate(helpTemplate)
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		e := c.ErrOrStderr()
		c.SetErr(io.Discard) // only for errors of writes, which run prints
		help(c, args)
		c.SetErr(e)
	})
	describe(root)
	completeFlags(root)
	checkValues(root)
	return root
}

//go:embed help
var helpTexts embed.FS

// describe sets the description and the examples of a command and its subcommands from the files help/COMMAND.txt.
func describe(cmd *cobra.Command) {
	name := strings.ReplaceAll(strings.TrimPrefix(cmd.CommandPath(), "jobwire "), " ", "-")
	if text, err := helpTexts.ReadFile("help/" + name + ".txt"); err == nil {
		long, example, _ := strings.Cut(strings.TrimSuffix(string(text), "\n"), "\n\nExamples:\n")
		cmd.Long, cmd.Example = strings.Replace(long, "{faults}", cmd.Long, 1), example
	}
	for _, c := range cmd.Commands() {
		describe(c)
	}
}

func newVersion() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if format == "json" {
				return writeJSON(c.OutOrStdout(), version.NewHead())
			}
			fmt.Fprintf(c.OutOrStdout(), "jobwire %s\n", version.Get())
			return nil
		},
	}
	formatFlag(cmd, &format, "text", "json")
	return cmd
}

// formatFlag adds --format. The first format is the default.
func formatFlag(cmd *cobra.Command, format *string, formats ...string) {
	choiceFlag(cmd, format, "format", "`FORMAT` of the output: "+strings.Join(formats, ", "), formats...)
}

// choiceFlag adds a flag whose value is one of several. The first is the default.
func choiceFlag(cmd *cobra.Command, value *string, name, about string, allowed ...string) {
	*value = allowed[0]
	cmd.Flags().Var(choice{value, allowed}, name, about)
	cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(names(allowed), cobra.ShellCompDirectiveNoFileComp))
}

// choice is the value of a flag that is one of several.
type choice struct {
	value   *string
	allowed []string
}

func (c choice) String() string {
	if c.value == nil { // pflag compares with the zero value
		return ""
	}
	return *c.value
}

func (c choice) Type() string { return "string" }

func (c choice) Set(text string) error {
	if !slices.Contains(c.allowed, text) {
		n := len(c.allowed) - 1
		return fmt.Errorf("expected %s or %s", strings.Join(c.allowed[:n], ", "), c.allowed[n])
	}
	*c.value = text
	return nil
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			var found choices
			if cmd, rest, err := c.Root().Find(args); err == nil && len(rest) == 0 {
				for _, sub := range cmd.Commands() {
					if sub.IsAvailableCommand() {
						found.add(sub.Name(), sub.Short)
					}
				}
			}
			return found.after(typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			cmd, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				topic := strings.Join(args, " ")
				return usage(fmt.Errorf("unknown command %q%s", topic, suggestion(topic, commandNames(c.Root()))))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// files is the argument check of commands that take one or more arguments.
func files(missing string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New(missing)
		}
		return nil
	}
}

// writeJSON writes a value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// commandNames returns the names of the commands directly below cmd.
func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// exclusiveFlags is the annotation in which cobra keeps the groups of
// Command.MarkFlagsMutuallyExclusive: names separated by spaces.
const exclusiveFlags = "cobra_annotation_mutually_exclusive"

// checkExclusive returns an error if two flags of one group are set. Its message is
// plainer than that of cobra's own check, which runs later.
func checkExclusive(flags *pflag.FlagSet) error {
	var err error
	flags.Visit(func(f *pflag.Flag) {
		for _, group := range f.Annotations[exclusiveFlags] {
			for _, name := range strings.Fields(group) {
				if other := flags.Lookup(name); other != nil && other.Changed && name < f.Name && err == nil {
					err = fmt.Errorf("--%s and --%s are mutually exclusive", name, f.Name)
				}
			}
		}
	})
	return err
}

// suggestFlag adds to the error about an unknown flag the subcommand of this name, or the most similar flag.
func suggestFlag(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		var limit errLimit
		switch {
		case errors.Is(err, errEmpty):
			return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, errEmpty)
		case errors.As(err, &limit):
			return fmt.Errorf("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), limit)
		}
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.Name() == unknown.GetSpecifiedName() {
			return fmt.Errorf("%w; did you mean the command %q?", err, c.CommandPath())
		}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return fmt.Errorf("%w%s", err, suggestion("--"+unknown.GetSpecifiedName(), names))
}

// suggestion returns "; did you mean NAME?" for the name most similar to one that was
// typed, or "" if none is similar.
func suggestion(typed string, names []string) string {
	best, least := "", max(2, len(typed)/3)+1
	for _, name := range names {
		if d := prose.Distance(typed, name); d < least {
			best, least = name, d
		} else if best == "" && len(typed) > 2 && strings.HasPrefix(name, typed) {
			best = name
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// helpTemplate prints the examples first, since most readers look for them.
const helpTemplate = `{{with or .Long .Short}}{{wrapText . | trimTrailingWhitespaces}}

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

// A flagGroup is a part of the list of flags in the help of a command.
type flagGroup struct {
	title string
	names string // names of flags, separated by spaces
}

// groupAnnotation is the annotation with the position of a flag in the help and the title of its group.
const groupAnnotation = "jobwire_group"

// groupFlags makes the help of a command list its flags in the order of groups, with
// their titles. Flags without a group come last.
func groupFlags(cmd *cobra.Command, groups []flagGroup) {
	for i, g := range groups {
		for j, name := range strings.Fields(g.names) {
			if cmd.Flags().Lookup(name) != nil { // commands with fewer flags share the groups
				cmd.Flags().SetAnnotation(name, groupAnnotation, []string{fmt.Sprintf("%02d %02d", i, j), g.title})
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
		fmt.Fprintf(&b, "%s:\n%s\n", l.title, l.flags.FlagUsagesWrapped(columns(cmd.OutOrStdout())))
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

// listItem prints a name and its description. On a terminal, the description is wrapped and all its lines begin in the
// column after first.
func listItem(w io.Writer, first, text string) {
	if isTerminal(w) {
		text = prose.Wrap(first, strings.Repeat(" ", len(first)), text, columns(w))
	} else {
		text = first + text
	}
	fmt.Fprintln(w, text)
}

// lineWidth returns the length of the lines that fit the terminal that w writes to. If w is not one, length is not
// limited.
func lineWidth(w io.Writer) int {
	if isTerminal(w) {
		return columns(w)
	}
	return math.MaxInt
}

// wantsColor reports whether w is a terminal and the environment does not disable color (NO_COLOR, TERM=dumb).
func wantsColor(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// colorFlag is the value of --color.
type colorFlag struct{ when string }

func (c *colorFlag) add(cmd *cobra.Command) {
	choiceFlag(cmd, &c.when, "color", "`WHEN` to use color: auto (on a terminal), always or never", "auto", "always",
		"never")
}

// on reports whether to use color in the output to w.
func (c *colorFlag) on(w io.Writer) bool {
	on := c.when == "always" || c.when == "auto" && wantsColor(w)
	if on {
		allowColors(w)
	}
	return on
}
