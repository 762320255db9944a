// Command jobwire tests servers, clients and workers of job queues against the specification of their protocol, fuzzes
// servers, measures them under load, and decodes captures.
//
// README.md and docs/README.md explain its use, and 'jobwire help COMMAND' describes the flags of each command. The
// file or package of a command (conform.go, cmd/internal/fuzzcmd) parses flags and prints results; the packages of the
// module do the work.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"jobwire/cmd/internal/benchcmd"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/cmd/internal/fuzzcmd"
	"jobwire/internal/target"
	"jobwire/internal/textfile"
	"jobwire/internal/version"
)

// inputTime is the time after an interrupt in which a command that waits for input ends: it cannot interrupt the wait, and
// has nothing to report yet. Other commands end within two seconds, but on a busy machine a report takes longer to write,
// and must not be lost. A second interrupt ends them.
const inputTime = time.Second

// main runs the command of the arguments and exits with its status. The first interrupt cancels the context of the
// command; if the command then still waits for input after inputTime, main ends the program. A second interrupt ends
// the program at once.
func main() {
	cli.Alone = true
	cli.TuneMemory(math.MaxInt64, cli.GCPercent)
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
	for {
		select {
		case n := <-status:
			os.Exit(n)
		case <-time.After(inputTime):
		}
		if textfile.Waiting() {
			fmt.Fprintf(os.Stderr, "jobwire: interrupted: the command did not end within %v\n", inputTime)
			os.Exit(cli.StatusFailed)
		}
	}
}

// run executes a command line and returns its exit status. If the reader of standard output or standard error closes
// it, the command ends as after an interrupt.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (status int) {
	root := newRoot()
	out, e := cli.NewOutput(stdout), cli.NewOutput(stderr)
	defer out.Close()
	defer e.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out.To.Gone, e.To.Gone = cancel, cancel
	stderr = e
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		cli.PlainUsages(root)
	}
	started := false
	onStart(root, func() { started = true })
	cmd, err := root.ExecuteContextC(ctx)
	defer func() {
		if err := connect.KeyLogError(cmd); err != nil {
			fmt.Fprintf(stderr, "jobwire: %v\n", err)
			status = cli.StatusFailed
		}
	}()
	if err := out.To.Failed(); err != nil {
		fmt.Fprintf(stderr, "jobwire: cannot write: %v\n", err)
		return cli.StatusFailed
	}
	if errors.Is(e.To.Failed(), syscall.EPIPE) {
		return cli.StatusFailed // and nothing can be printed
	}
	if err == nil {
		return cli.StatusOK
	}
	status = cli.StatusFailed
	var known *cli.Error
	switch {
	case errors.As(err, &known):
		status = known.Status
		if known.Err == nil {
			if status == cli.StatusUnreachable && ctx.Err() != nil {
				return cli.StatusFailed // interrupted; the target may be reachable
			}
			return status
		}
	case errors.Is(err, target.ErrUnreachable):
		status = cli.StatusUnreachable
	case !started:
		status = cli.StatusUsage // cobra rejected the command line
	}
	if ctx.Err() != nil && (status == cli.StatusUnreachable || errors.Is(err, context.Canceled)) {
		if err.Error() == context.Canceled.Error() {
			err = errors.New("nothing is complete")
		}
		fmt.Fprintf(stderr, "jobwire: interrupted: %v\n", err)
		return cli.StatusFailed // the target may be reachable
	}
	var refused syscall.Errno
	if status == cli.StatusUsage && errors.As(err, &refused) {
		status = cli.StatusFailed // the operating system rejected it, as for a file that does not exist
	}
	fmt.Fprintf(stderr, "jobwire: %v\n", err)
	if cmd.Name() == "help" {
		cmd = root
	}
	if status == cli.StatusUsage {
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

// newRoot returns the command "jobwire" with all subcommands, and adds their help texts and shell completions. It also
// checks that a user does not combine flags that are mutually exclusive, before a subcommand runs.
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
			return fmt.Errorf("unknown command %q%s", args[0], cli.Suggestion(args[0], cli.CommandNames(c)))
		},
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return cli.CheckExclusive(c.Flags()) },
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(newServe(), newConform(), newAudit(), benchcmd.New(), fuzzcmd.New(), newPlay(), newEncode(), newDecode(),
		newExport(), newRules(), newCorpus(), newVersion(), cli.NewMan())
	root.SetHelpCommand(newHelp())
	root.SetVersionTemplate("jobwire {{.Version}}\n")
	root.SetFlagErrorFunc(cli.SuggestFlag)
	root.SetHelpTemplate(cli.HelpTemplate)
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		e := c.ErrOrStderr()
		c.SetErr(io.Discard) // only for errors of writes, which run prints
		help(c, args)
		c.SetErr(e)
	})
	describe(root)
	completeFlags(root)
	cli.CheckValues(root)
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

// newVersion returns the command "version", which has the same output as the flag --version, and with --format json
// also prints it for programs.
func newVersion() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if format == "json" {
				return cli.WriteJSON(c.OutOrStdout(), version.NewHead())
			}
			fmt.Fprintf(c.OutOrStdout(), "jobwire %s\n", version.Get())
			return nil
		},
	}
	cli.FormatFlag(cmd, &format, "text", "json")
	return cmd
}

// newHelp returns the command "help", which replaces that of cobra: it exits with an error for an unknown command.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			var found cli.Choices
			if cmd, rest, err := c.Root().Find(args); err == nil && len(rest) == 0 {
				for _, sub := range cmd.Commands() {
					if sub.IsAvailableCommand() {
						found.Add(sub.Name(), sub.Short)
					}
				}
			}
			return found.After(typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			cmd, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				topic := strings.Join(args, " ")
				return cli.Usage(fmt.Errorf("unknown command %q%s", topic, cli.Suggestion(topic, cli.CommandNames(c.Root()))))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}
