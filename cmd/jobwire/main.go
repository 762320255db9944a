// Command jobwire tests, judges and loads job queues.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"jobwire/internal/target"
)

// Exit statuses, the same for every command.
const (
	exitHeld        = 0 // everything held
	exitFellShort   = 1 // something fell short
	exitUsage       = 2 // the command line, or a file it names, is wrong
	exitUnreachable = 3 // the target could not be reached, or died
)

// exit is an error that sets the exit status. A nil err is told to nobody: the
// command has said already what fell short.
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

// usage marks an error as the user's, to be mended on the command line or in a
// file.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exit{exitUsage, err}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes a command line and returns its exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	out := &output{Writer: stdout}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if out.err != nil {
		fmt.Fprintf(stderr, "jobwire: cannot write: %v\n", out.err)
		return exitFellShort
	}
	if err == nil {
		return exitHeld
	}
	status := exitUsage // what cobra itself refuses is the command line
	var e *exit
	switch {
	case errors.As(err, &e):
		status = e.status
		if e.err == nil {
			return status
		}
	case errors.Is(err, target.ErrUnreachable):
		status = exitUnreachable
	}
	fmt.Fprintf(stderr, "jobwire: %v\n", err)
	if status == exitUsage {
		fmt.Fprintln(stderr, "jobwire: try 'jobwire help', or --help behind a command")
	}
	return status
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "jobwire",
		Short: "Test, judge, fuzz and load job queues",
		Long: `jobwire is a protocol test toolkit, fuzzer and load generator for job queues: it
judges servers, clients and workers (conform, audit), looks for what breaks a
server (fuzz) and how fast it is (bench), explains captures (decode), performs
conversations and writes them (play, encode), and serves a strict reference
server (serve).

Without --addr or --exec, a command serves itself an embedded reference server.
Exit status: 0 everything held, 1 something fell short, 2 wrong usage, 3 the
target could not be reached or died.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is no command", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(newServe(), newConform(), newAudit(), newBench(), newFuzz(), newPlay(), newEncode(), newDecode(), newRules(), newCorpus())
	root.SetHelpTemplate(helpTemplate)
	return root
}

// helpTemplate puts the examples first: they are what most people look for.
const helpTemplate = `{{with or .Long .Short}}{{. | trimTrailingWhitespaces}}

{{end}}{{if .HasExample}}Examples:
{{.Example}}

{{end}}Usage:
  {{.UseLine}}{{if .HasAvailableSubCommands}} COMMAND

Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}}  {{.Short}}{{end}}{{end}}{{end}}
{{if .HasAvailableLocalFlags}}
Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{end}}`

// output is standard output. It remembers whether anything could not be written, so that no
// command has to.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	if o, ok := w.(*output); ok {
		w = o.Writer
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// wantsColor reports whether w is a terminal whose user has not declined colour.
func wantsColor(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// colorFlag is --color.
type colorFlag struct{ when string }

func (c *colorFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.when, "color", "auto", "colour: auto (on a terminal), always or never")
	cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
}

func (c *colorFlag) on(w io.Writer) (bool, error) {
	switch c.when {
	case "auto":
		return wantsColor(w), nil
	case "always", "never":
		return c.when == "always", nil
	}
	return false, usage(fmt.Errorf("--color %q: it is auto, always or never", c.when))
}
