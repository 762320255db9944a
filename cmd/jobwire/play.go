package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/capturefile"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/internal/watch"
	"jobwire/play"
)

type playOptions struct {
	protocol string
	target   connect.TargetFlags
	listen   connect.ListenFlags
	actors   []string
	exact    bool
	annotate bool
	full     bool
	hex      bool
	quiet    bool
	timeout  time.Duration
	waive    []string
	pcap     string
	color    cli.ColorFlag
}

// newPlay returns the command "play", which sends the messages of transcripts and compares the replies with the
// expected ones, with its subcommand.
func newPlay() *cobra.Command {
	o := &playOptions{}
	cmd := &cobra.Command{
		Use:   "play FILE... [flags]",
		Short: "Play a transcript against a server, or as the server",
		Args:  cli.OneOrMore("play needs at least one transcript file, or - for standard input"),
		RunE:  o.execute,
	}
	f := cmd.Flags()
	o.target.Add(cmd)
	o.target.Env = exec.ServerEnv() // a finding of fuzz may need it
	o.listen.Add(cmd, "listen", "play the server: listen on `ADDRESS`: HOST:PORT or unix:PATH")
	o.addTranscript(cmd)
	f.StringArrayVar(&o.actors, "actor", nil, "play only this `ACTOR` of the transcript, such as 'Worker 2', or all actors of a role, such as Worker; repeatable")
	f.BoolVar(&o.annotate, "annotate", false, "show the bytes of every message")
	f.BoolVar(&o.hex, "hex", false, "show the bytes of every message in hex, also for text protocols")
	f.BoolVar(&o.full, "full", false, "show long payloads in full")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print only transcripts that fail")
	f.StringVar(&o.pcap, "pcap", "", "write a capture of the messages to `FILE`; packet comments name the line of each message in the transcript")
	o.color.Add(cmd)
	cli.GroupFlags(cmd, playFlagGroups)
	cmd.MarkFlagsMutuallyExclusive("listen", "addr", "exec")
	cmd.MarkFlagsMutuallyExclusive("listen", "actor")
	cmd.AddCommand(newPlayCase())
	return cmd
}

// playFlagGroups are the groups in which the help lists the flags of play and play case.
var playFlagGroups = []cli.FlagGroup{
	{Title: "Server", Names: "addr exec listen listen-cert listen-key listen-client-ca"},
	connect.ConnectionGroup,
	{Title: "Transcript", Names: "protocol actor exact timeout waive"},
	{Title: "Output", Names: "annotate hex full quiet pcap color"},
}

// addTranscript adds the flags about the transcript and how to compare replies with it.
func (o *playOptions) addTranscript(cmd *cobra.Command) {
	f := cmd.Flags()
	connect.ProtocolFlag(cmd, &o.protocol)
	f.BoolVar(&o.exact, "exact", false, "send and expect job handles exactly as recorded")
	f.DurationVar(&o.timeout, "timeout", play.DefaultTimeout, "time limit for each reply, if the transcript sets none")
	f.StringArrayVar(&o.waive, "waive", nil, "`RULE` that received messages may break; repeatable")
}

// read checks the flags, and reads transcripts of one protocol and the rules to waive.
func (o *playOptions) read(cmd *cobra.Command, files []string) (sys *catalog.Entry, scripts []*transcript.Script,
	waive []codec.RuleID, err error) {
	for _, name := range files {
		speaks, more, err := connect.ReadScripts(cmd, o.protocol, name)
		if err != nil {
			return nil, nil, nil, err
		}
		if sys != nil && speaks != sys {
			return nil, nil, nil, cli.Usage(fmt.Errorf("%s is a transcript of %s, but the previous file is a transcript of %s: name only transcripts of one protocol", name, speaks.Protocol.Title, sys.Protocol.Title))
		}
		sys, scripts = speaks, append(scripts, more...)
	}
	if err := o.target.Check(sys); err != nil {
		return nil, nil, nil, err
	}
	for _, s := range scripts {
		if how := s.Value("segments"); how != "" {
			if _, err := play.SegmentationNamed(how); err != nil {
				return nil, nil, nil, cli.Usage(fmt.Errorf("%s: @segments: %w", s.File, err))
			}
		}
	}
	waive, err = connect.RuleIDs(sys.Protocol, o.waive)
	return sys, scripts, waive, err
}

// execute plays the transcripts one after the other and reports each. It stops early when the user interrupts it, the
// server has exited or is missing a login, or the target is not a server of the protocol. The exit status is the most
// serious one of all transcripts.
func (o *playOptions) execute(cmd *cobra.Command, files []string) error {
	cli.TuneMemory(cli.SoftMemory, cli.GCPercent)
	sys, scripts, waive, err := o.read(cmd, files)
	if err != nil {
		return err
	}
	if err := o.checkActors(scripts); err != nil {
		return err
	}
	color := o.color.On(cmd.OutOrStdout())
	o.target.Conn.Warnings = cmd.ErrOrStderr()
	stage, err := o.stage(cmd, sys, scripts)
	if err != nil {
		return err
	}
	defer stage.clear()

	var packets *capturefile.File
	if o.pcap != "" {
		if packets, err = capturefile.Create(o.pcap, sys.Protocol); err != nil {
			return cli.Usage(err)
		}
		defer packets.File.Close()
	}
	status := cli.StatusOK
	for i, s := range scripts {
		if cmd.Context().Err() != nil {
			status = cli.StatusFailed
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: interrupted after %d of %s\n", i, cli.Counted(len(scripts), "transcript"))
			break
		}
		show := play.ReportOptions{Bytes: o.annotate || o.hex, Full: o.full, Hex: o.hex, Color: color}
		opts := play.Options{Timeout: o.timeout, Exact: o.exact, Actors: o.actors, Codec: codec.Options{Waive: waive}}
		watcher, err := stage.watch(s)
		if err != nil {
			return cli.Usage(fmt.Errorf("%s: %w", s.File, err))
		}
		opts.Watch(watcher)
		began := time.Now()
		r := stage.perform(cmd.Context(), s, opts)
		if packets != nil {
			if err := packets.Add(r.Events, began, capturefile.PlayComments(s, r)); err != nil {
				return err
			}
		}
		got := o.report(cmd, s, r, show, len(scripts) > 1)
		if r.Failure == nil {
			problem, err := stage.after(cmd.Context(), watcher, s, opts)
			var failure *play.Failure
			switch {
			case errors.As(err, &failure):
				problem = err.Error()
			case err != nil:
				return cli.Usage(fmt.Errorf("%s: %w", s.File, err))
			}
			if problem != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s: %s\n", s.File, problem)
				got = cli.StatusFailed
			}
			status = max(status, got)
			continue
		}
		if err = stage.died(); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %v\n", err)
			got = cli.StatusUnreachable
		}
		if o.target.Conn.LoginMissing.Load() && replies(r) <= 1 { // the transcript does not log in
			status = cli.StatusUnreachable
			break
		}
		if other := o.otherServer(cmd.Context(), sys, stage.target, s, r); err == nil && other != nil {
			err, got = other, cli.StatusUnreachable
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %v\n", err)
		}
		if isFinding(s) && r.Messages() > 0 {
			got = cli.StatusFailed // the server still has the fault, which may have crashed it
		}
		status = max(status, got)
		if err != nil {
			break
		}
	}
	if packets != nil {
		if err := packets.Close(); err != nil {
			return err
		}
	}
	if status != cli.StatusOK {
		return &cli.Error{Status: status}
	}
	return nil
}

// otherServer returns an error if a script failed with no or one reply because no connection to the target opens, or
// because the target uses TLS or is a server of another protocol.
func (o *playOptions) otherServer(ctx context.Context, sys *catalog.Entry, t target.Target,
	s *transcript.Script, r *play.Result) error {
	if t == nil || isFinding(s) || replies(r) > 1 {
		return nil
	}
	c, err := target.Dial(ctx, t)
	if err != nil {
		return err
	}
	c.Close()
	return o.target.CheckProtocol(ctx, sys, t)
}

// replies returns the number of messages that servers have sent.
func replies(r *play.Result) int {
	n := 0
	for i := range r.Events {
		if e := &r.Events[i]; e.From == codec.Server && e.Verb <= transcript.Raw {
			n++
		}
	}
	return n
}

// isFinding reports whether fuzz has saved the transcript.
func isFinding(s *transcript.Script) bool { return strings.HasPrefix(s.Value("case"), "fuzz.") }

// checkActors returns an error if --actor names neither an actor nor a role in the transcripts.
func (o *playOptions) checkActors(scripts []*transcript.Script) error {
	for _, name := range o.actors {
		found := false
		for _, s := range scripts {
			for i := range s.Steps {
				a := s.Steps[i].Peer
				found = found || a.Name == name || s.Protocol.RoleNames(a.Role) == name
			}
		}
		if !found {
			return cli.Usage(fmt.Errorf("--actor %q: no such actor in the transcript", name))
		}
	}
	return nil
}

// stage plays scripts against a target, or as the server, without a target.
type stage struct {
	perform func(context.Context, *transcript.Script, play.Options) *play.Result
	target  target.Target
	clear   func()
}

// stage opens the listener for --listen, or starts or connects to the target. The caller must call clear of the result.
func (o *playOptions) stage(cmd *cobra.Command, sys *catalog.Entry, scripts []*transcript.Script) (*stage, error) {
	if o.listen.Addr != "" {
		ln, err := o.listen.Listen("")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: playing the %s on %s\n", sys.Protocol.ServerName, transport.Name(ln))
		return &stage{
			perform: func(ctx context.Context, s *transcript.Script, opts play.Options) *play.Result {
				return play.Server(ctx, s, ln, opts)
			},
			clear: func() { ln.Close() },
		}, nil
	}
	t, err := o.startFor(cmd.Context(), sys, scripts)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) { return target.Dial(ctx, t) }
	return &stage{
		perform: func(ctx context.Context, s *transcript.Script, opts play.Options) *play.Result {
			return play.Peers(ctx, s, dial, opts)
		},
		target: t,
		clear:  func() { t.Stop() },
	}, nil
}

func (st *stage) died() error {
	if st.target == nil {
		return nil
	}
	return target.Died(st.target)
}

// startFor starts the target. The built-in server runs in a process of its own if a transcript requests checks of the
// server process (@watch).
func (o *playOptions) startFor(ctx context.Context, sys *catalog.Entry, scripts []*transcript.Script) (target.Target,
	error) {
	watched := slices.ContainsFunc(scripts, func(s *transcript.Script) bool { return s.Value("watch") != "" })
	if watched && o.target.Builtin() {
		return connect.StartBuiltin(ctx, o.target.Name(sys), sys)
	}
	return o.target.Start(ctx, sys)
}

// watch returns a watcher for the checks of the server process that the transcript requests. It returns nil if there
// are none, or no target.
func (st *stage) watch(s *transcript.Script) (*watch.Watcher, error) {
	checks, err := play.Checks(s)
	if st.target == nil || len(checks) == 0 || err != nil {
		return nil, err
	}
	return watch.New(st.target, checks)
}

// after checks the process of the target after the connections are closed. It returns a description of the problem, or
// "" if there is none.
func (st *stage) after(ctx context.Context, w *watch.Watcher, s *transcript.Script, opts play.Options) (string, error) {
	if w == nil {
		return "", nil
	}
	opts.Watch(nil)
	return w.After(func() error {
		if r := st.perform(ctx, s, opts); r.Failure != nil {
			return fmt.Errorf("the replies matched once, but not when play sent the transcript again: %w", r.Failure)
		}
		return nil
	})
}

// report prints the result of a script and returns the exit status.
func (o *playOptions) report(cmd *cobra.Command, s *transcript.Script, r *play.Result, show play.ReportOptions,
	many bool) int {
	out := cmd.OutOrStdout()
	title := s.File
	if name := s.Value("case"); name != "" {
		title += " " + name
	}
	if many && (!o.quiet || r.Failure != nil) {
		fmt.Fprintf(out, "# %s\n", title)
	}
	if !o.quiet || r.Failure != nil {
		play.WriteReport(out, s, r, show)
	}
	if many && !o.quiet {
		fmt.Fprintln(out)
	}
	verdict, status := "passed", cli.StatusOK
	switch f := r.Failure; {
	case f == nil && r.Grade == transcript.NonStrict:
		verdict = "non-strict: the transcript accepts these replies, but the specification asks for different ones"
	case f != nil && cmd.Context().Err() != nil:
		verdict, status = "interrupted at line "+fmt.Sprint(f.Step.Line), cli.StatusFailed
	case f != nil:
		verdict, status = "failed at line "+fmt.Sprint(f.Step.Line), cli.StatusFailed
		if f.Reason == play.Unreachable {
			status = cli.StatusUnreachable
		}
	}
	if !o.quiet || status != cli.StatusOK {
		fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s: %s, %d messages in %v\n", title, verdict, r.Messages(),
			r.Took.Round(10*time.Microsecond))
	}
	return status
}
