package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/audit"
	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/internal/target"
	"jobwire/internal/virtualtime"
	"jobwire/refserver"
)

// drivers returns the reference clients and workers of a protocol that have stress tests, by role.
func drivers(sys *catalog.Entry) map[string]audit.Driver {
	all := map[string]audit.Driver{}
	for _, role := range audit.Roles(sys.Protocol) {
		if program := sys.Programs[role]; program != nil {
			all[role] = audit.Driver(program)
		}
	}
	return all
}

// stressOptions are the flags of audit stress.
type stressOptions struct {
	auditOptions
	programs []string
	timeout  time.Duration
	quiet    bool
}

// stressFormats has the functions that write machine-readable reports, by the value of --format.
var stressFormats = map[string]func(*audit.StressReport, io.Writer) error{
	"github": (*audit.StressReport).WriteGitHub,
	"json":   (*audit.StressReport).WriteJSON,
	"junit":  (*audit.StressReport).WriteJUnit,
	"tap":    (*audit.StressReport).WriteTAP,
}

// newAuditStress returns the command "audit stress", which runs clients and workers while it injects faults into the
// network and the server.
func newAuditStress() *cobra.Command {
	o := &stressOptions{}
	cmd := &cobra.Command{
		Use:   "stress PROTOCOL [FAULT-PROFILE...] [flags]",
		Short: "Test clients and workers under faults of network and server",
	}
	connect.ProtocolCommandWith(cmd, connect.ProtocolCompleter(faultProfileChoices), o.execute)
	f := cmd.Flags()
	o.target.Add(cmd)
	f.StringArrayVar(&o.programs, "program", nil,
		"driver to start, as `ROLE=COMMAND`; repeatable (default: the reference client and worker)")
	f.DurationVar(&o.timeout, "timeout", 5*time.Second, "time limit for one task")
	o.addReport(cmd, "`DIR` for transcripts of failed runs", slices.Sorted(maps.Keys(stressFormats))...)
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no live display")
	cli.GroupFlags(cmd, auditFlagGroups)
	return cmd
}

// newAuditProfiles returns the command that lists the fault profiles.
func newAuditProfiles() *cobra.Command {
	return &cobra.Command{
		Use:               "profiles",
		Short:             "List the fault profiles of audit stress",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for i := range audit.FaultProfiles {
				c := &audit.FaultProfiles[i]
				cli.ListItem(cmd.OutOrStdout(), fmt.Sprintf("%-16s ", c.Name), c.About+c.Note())
			}
			return nil
		},
	}
}

// newAuditSelfTest returns the command that tests audit stress.
func newAuditSelfTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "self-test PROTOCOL",
		Short: "Check that audit stress detects injected faults",
	}
	connect.ProtocolCommand(cmd, auditSelfTest)
	return cmd
}

// execute runs drivers under the named fault profiles, or under all, and reports the results.
func (o *stressOptions) execute(cmd *cobra.Command, sys *catalog.Entry, names []string) error {
	cli.TuneMemory(cli.SoftMemory, cli.GCPercent)
	profiles, err := faultProfiles(names)
	if err != nil {
		return err
	}
	waive, color, err := o.check(cmd, sys)
	if err != nil {
		return err
	}
	p := sys.Protocol
	if len(audit.Roles(p)) == 0 {
		return cli.Usage(fmt.Errorf("there is no stress test for %s", p.Title))
	}
	tested := drivers(sys)
	if len(o.programs) > 0 {
		named, err := programs(o.programs)
		if err != nil {
			return cli.Usage(err)
		}
		tested = map[string]audit.Driver{}
		for role, program := range named {
			if !slices.Contains(audit.Roles(p), role) {
				return cli.Usage(fmt.Errorf("--program: expected one of the roles %[2]s, got %[1]q", role,
					strings.Join(audit.Roles(p), ", ")))
			}
			tested[role] = audit.Driver(program)
		}
		o.target.Conn.Warnings = cmd.ErrOrStderr()
	}
	if len(tested) == 0 {
		return cli.Usage(fmt.Errorf("no reference client or worker for %s: name a driver with --program", p.Title))
	}
	opts := stressOf(sys, profiles, tested)
	opts.Limit, opts.Codec.Waive, opts.Levels = o.timeout, waive, o.failing()
	opts.Start = func(ctx context.Context) (target.Target, error) { return o.target.Start(ctx, sys) }
	if !o.target.Builtin() { // report an unreachable server once, not for each run
		srv, err := o.server(cmd.Context(), sys, nil)
		if err != nil {
			return err
		}
		srv.Stop()
		opts.Omit = func(role string, f *audit.Failure) {
			fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: a task is left out, because the reference %s fails it on this server: %s: %s\n",
				role, f.Task, f.Note)
		}
	}
	if o.target.Addr != "" {
		opts.FaultProfiles = slices.DeleteFunc(opts.FaultProfiles, func(c *audit.FaultProfile) bool { return c.Restarts })
	}
	out, shown := cmd.OutOrStdout(), audit.TextOptions{Color: color, Hex: o.hex}
	var failed error
	if o.scripts != "" {
		opts.Record = func() (audit.Recording, error) { return record(p, "") }
	}
	opts.Done = func(x *audit.Outcome) {
		if x.Recording != nil {
			defer x.Recording.Discard()
		}
		if !x.Passed() {
			x.Command = o.repeats(sys, x)
			if rec, _ := x.Recording.(*recording); rec != nil && rec.bytes > 0 {
				dir := filepath.Join(o.scripts, strings.ToLower(x.Role)+"-"+x.FaultProfile.Name)
				if err := rec.finish(); err != nil {
					failed = cmp.Or(failed, err)
				} else {
					failed = cmp.Or(failed, rec.transcribe(cmd.ErrOrStderr(), dir))
				}
			}
		}
		if o.format == "text" {
			_, err := out.Write(x.AppendText(nil, p, shown))
			failed = cmp.Or(failed, err)
		}
	}
	end := o.showLive(cmd, p, &opts)
	r := &audit.StressReport{Protocol: p, Began: time.Now()}
	r.Outcomes, r.Err = audit.Stress(cmd.Context(), opts)
	end()
	if r.Interrupted = cmd.Context().Err() != nil; r.Err != nil && !r.Interrupted && len(r.Outcomes) == 0 {
		return r.Err
	}
	if write := stressFormats[o.format]; write != nil {
		err = write(r, out)
	} else if err = failed; err == nil {
		err = r.WriteSummary(out)
	}
	if err != nil {
		return err
	}
	return stressError(r)
}

// stressError returns the error with the exit status for a report.
func stressError(r *audit.StressReport) error {
	why := errors.New(r.Stopped())
	switch {
	case r.Interrupted:
		return why
	case r.Err != nil:
		return r.Err
	case r.Failed():
		return &cli.Error{Status: cli.StatusFailed}
	case r.Stopped() != "":
		return &cli.Error{Status: cli.StatusInvalid, Err: why}
	}
	return nil
}

// repeats returns the command that repeats the run of an outcome.
func (o *stressOptions) repeats(sys *catalog.Entry, x *audit.Outcome) string {
	words := []string{"jobwire", "audit", "stress", sys.Protocol.Name, x.FaultProfile.Name}
	for _, program := range o.programs {
		if strings.HasPrefix(program, x.Role+"=") {
			words = append(words, "--program", program)
		}
	}
	return target.Join(append(words, o.target.Words()...))
}

func stressOf(sys *catalog.Entry, profiles []*audit.FaultProfile, tested map[string]audit.Driver) audit.StressOptions {
	return audit.StressOptions{
		Protocol: sys.Protocol, FaultProfiles: profiles, Drivers: tested, Partners: drivers(sys),
		Start: func(ctx context.Context) (target.Target, error) { return (&connect.TargetFlags{}).Start(ctx, sys) },
	}
}

// faultProfiles returns the fault profiles with these names, or all if there is no name.
func faultProfiles(names []string) ([]*audit.FaultProfile, error) {
	var all []*audit.FaultProfile
	for _, name := range names {
		p := audit.FaultProfileNamed(name)
		if p == nil {
			return nil, cli.Usage(fmt.Errorf("unknown fault profile %q: to list the fault profiles, run 'jobwire audit profiles'",
				name))
		}
		all = append(all, p)
	}
	if len(names) == 0 {
		for i := range audit.FaultProfiles {
			all = append(all, &audit.FaultProfiles[i])
		}
	}
	return all, nil
}

// auditSelfTest checks that the reference client and worker pass under all fault profiles, and that each injected fault
// is detected.
func auditSelfTest(cmd *cobra.Command, sys *catalog.Entry) error {
	if sys.PeerMutants == nil {
		var names []string
		for _, e := range catalog.All() {
			if e.PeerMutants != nil {
				names = append(names, e.Protocol.Name)
			}
		}
		return cli.Usage(fmt.Errorf("audit self-test supports %s only", strings.Join(names, ", ")))
	}
	all, err := faultProfiles(nil)
	if err != nil {
		return err
	}
	opts := stressOf(sys, all, drivers(sys))
	opts.Start = func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, sys.Protocol.Name, func(ctx context.Context, ln net.Listener) error {
			return refserver.New(sys.New(), refserver.Options{Protocol: sys.Protocol}).Serve(ctx, ln)
		})
	}
	var report *audit.SelfTestReport
	if err := cli.UntilInterrupt(cmd.Context(), func() (err error) {
		report, err = audit.SelfTest(cmd.Context(), opts, sys.PeerMutants(), virtualtime.Run)
		return err
	}); err != nil {
		return err
	}
	if err := report.WriteText(cmd.OutOrStdout()); err != nil {
		return err
	}
	if !report.Passed() {
		return &cli.Error{Status: cli.StatusFailed}
	}
	return nil
}
