package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/pcap"
	"jobwire/pcap/decrypt"
	"jobwire/pcap/jobs"
	"jobwire/pcap/replay"
	"jobwire/pcap/report"
)

// decodeOptions has the flags of decode and its subcommands.
type decodeOptions struct {
	device   string
	tlsKeys  string
	protocol string
	ports    []uint
	filter   string
	job      string
	audit    bool
	certain  bool
	format   string
	annotate bool
	hex      bool
	full     bool
	utc      bool
	html     string
	output   string
	color    cli.ColorFlag
}

// decodeFlagGroups are the groups in which the help lists the flags of decode and its subcommands.
var decodeFlagGroups = []cli.FlagGroup{
	{Title: "Capture", Names: "interface tls-keys"},
	{Title: "Messages", Names: "protocol port filter job audit certain"},
	{Title: "Output", Names: "output format html annotate hex full utc color"},
}

// command returns a command that reads a capture.
func (o *decodeOptions) command(name, short string,
	run func(*cobra.Command, *pcap.Input, pcap.Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   name + " {FILE | --interface NAME} [flags]",
		Short: short,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.device != "" && len(args) > 0:
				return errors.New("a file and --interface are mutually exclusive")
			case o.device == "" && len(args) != 1:
				return fmt.Errorf("expected one capture file, - for standard input, or --interface, got %d files", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := o.options()
			if err != nil {
				return cli.Usage(err)
			}
			if o.tlsKeys != "" {
				log, err := os.Open(o.tlsKeys) // stays open, because programs may append to it during a live capture
				if err != nil {
					return cli.Usage(fmt.Errorf("--tls-keys: %w", err))
				}
				defer log.Close()
				if opts.Keys, err = decrypt.NewKeys(log); err != nil {
					return cli.Usage(fmt.Errorf("--tls-keys: %s: %w", o.tlsKeys, err))
				}
			}
			in, err := o.open(cmd, args, opts.Ports)
			if err != nil {
				return cli.Usage(err)
			}
			defer in.Close()
			cli.TuneMemory(decodeMemory, cli.GCPercent)
			return run(cmd, in, opts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.device, "interface", "", "capture on the network interface `NAME`; 'any' captures on all interfaces (only on Linux)")
	f.StringVar(&o.tlsKeys, "tls-keys", "", "TLS key log `FILE` (SSLKEYLOGFILE) with which to decrypt connections, in addition to keys in the capture")
	f.StringVar(&o.protocol, "protocol", "", "`PROTOCOL` of all connections (default: detected for each connection)")
	f.UintSliceVar(&o.ports, "port", nil, "only connections to this server `PORT`; repeatable")
	f.Lookup("port").DefValue = "" // pflag would show "(default [])"
	f.StringVar(&o.filter, "filter", "", "only messages that match all `TERMS`, such as 'type=WORK_* to=server'")
	return cmd
}

// decodeMemory is the soft memory limit, in bytes. Near it, the garbage collector runs more often.
const decodeMemory = 96 << 20

// newDecode returns the command "decode", which lists the messages in a capture, with its subcommands.
func newDecode() *cobra.Command {
	o := &decodeOptions{}
	cmd := o.command("decode", "List the messages of a packet capture", o.list)
	o.addSelection(cmd)
	f := cmd.Flags()
	cli.FormatFlag(cmd, &o.format, "text", "json")
	f.Lookup("format").Usage += " (json: one object per line)"
	f.BoolVar(&o.annotate, "annotate", false, "show the bytes of every message with their meaning")
	f.BoolVar(&o.hex, "hex", false, "like --annotate, with bytes in hex for text protocols too")
	f.BoolVar(&o.full, "full", false, "show long payloads in full, and the bytes of unknown protocols")
	f.BoolVar(&o.utc, "utc", false, "show times in UTC (default: local time)")
	o.color.Add(cmd)
	o.addCertain(cmd)
	cli.GroupFlags(cmd, decodeFlagGroups)
	cmd.AddCommand(newDecodeSummary(), newDecodeJobs(), newDecodePackets(), newDecodeTranscripts())
	return cmd
}

// addSelection adds the flags that select the messages of a job and violations.
func (o *decodeOptions) addSelection(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.job, "job", "", "only the messages of one job: its `HANDLE` (Gearman), ID (Beanstalk) or FUNCTION:ID (GearMonkey)")
	f.BoolVar(&o.audit, "audit", false, "only messages that violate a rule; exit with 1 if there is one")
	cmd.MarkFlagsMutuallyExclusive("job", "audit")
}

func (o *decodeOptions) addCertain(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.certain, "certain", false,
		"only messages whose beginning the capture proves, no likely messages")
}

// newDecodeSummary returns the command "decode summary", which prints counts in place of messages.
func newDecodeSummary() *cobra.Command {
	o := &decodeOptions{}
	cmd := o.command("summary", "Count the messages of each type, gaps and violations", o.summarize)
	cli.FormatFlag(cmd, &o.format, "text", "json")
	o.addCertain(cmd)
	cmd.Flags().StringVar(&o.html, "html", "", "`FILE` for an HTML report with job timelines")
	cli.GroupFlags(cmd, decodeFlagGroups)
	return cmd
}

func newDecodeJobs() *cobra.Command {
	o := &decodeOptions{}
	cmd := o.command("jobs", "Show statistics of the jobs of each queue", o.countJobs)
	cli.FormatFlag(cmd, &o.format, "text", "json")
	cli.GroupFlags(cmd, decodeFlagGroups)
	return cmd
}

func newDecodePackets() *cobra.Command {
	o := &decodeOptions{}
	cmd := o.command("packets", "Copy the packets of selected messages to a new capture", o.copyPackets)
	o.addSelection(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "-", "write the capture (pcapng) to `FILE` (-: standard output)")
	cli.GroupFlags(cmd, decodeFlagGroups)
	return cmd
}

// newDecodeTranscripts returns the command "decode transcripts", which writes the messages of a capture to transcript
// files.
func newDecodeTranscripts() *cobra.Command {
	o := &decodeOptions{}
	cmd := o.command("transcripts", "Write transcripts that 'jobwire play' can send to any server",
		func(cmd *cobra.Command, in *pcap.Input, opts pcap.Options) error {
			return writeTranscripts(cmd.OutOrStdout(), cmd.ErrOrStderr(), in, in.Name, o.output, opts)
		})
	cmd.Flags().StringVarP(&o.output, "output", "o", "",
		"write the transcripts to `DIR`, which must not contain files with their names (required)")
	cmd.MarkFlagRequired("output")
	cli.GroupFlags(cmd, decodeFlagGroups)
	return cmd
}

// options converts the flags to the options of package pcap. With --audit it extends the filter, so that only messages
// that violate a rule match.
func (o *decodeOptions) options() (pcap.Options, error) {
	opts := pcap.Options{Audit: o.audit}
	for _, p := range o.ports {
		if p < 1 || p > math.MaxUint16 {
			return opts, fmt.Errorf("--port: expected 1 to 65535, got %d", p)
		}
		opts.Ports = append(opts.Ports, uint16(p))
	}
	terms := o.filter
	if o.audit {
		terms += " rule=*"
	}
	var err error
	if terms != "" {
		if opts.Filter, err = pcap.ParseFilter(terms); err != nil {
			return opts, fmt.Errorf("--filter: %w", err)
		}
	}
	if o.protocol != "" {
		var sys *catalog.Entry
		if sys, err = connect.EntryNamed(o.protocol); err == nil {
			opts.Protocol = sys.Protocol
		}
	}
	return opts, err
}

// open opens the file, standard input or interface that the command line names.
func (o *decodeOptions) open(cmd *cobra.Command, args []string, ports []uint16) (*pcap.Input, error) {
	if o.device == "" {
		return pcap.OpenInput(cmd.Context(), args[0], cmd.InOrStdin())
	}
	in, err := pcap.OpenInterface(cmd.Context(), o.device, ports...)
	if err == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: capturing on %s; press Ctrl-C to stop\n", o.device)
	}
	return in, err
}

// list prints the selected messages.
func (o *decodeOptions) list(cmd *cobra.Command, in *pcap.Input, opts pcap.Options) error {
	out, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
	var w interface {
		Add(*pcap.Item)
		Flush() error
	}
	if o.format == "json" {
		w = report.NewJSONLines(out, o.full)
	} else {
		show := report.ListingOptions{Full: o.full, Hex: o.hex, Color: o.color.On(out), Lines: !o.annotate && !o.hex}
		if cli.IsTerminal(out) {
			show.Width = cli.Columns(out)
		}
		if o.utc {
			show.Local = time.UTC
		}
		w = report.NewListing(out, show)
	}
	in.OnIdle(func() { w.Flush() })
	selected := 0
	var sum report.Summary
	opts.Likely = !o.certain && !opts.Audit
	opts.Check = in.Streams() // a summary is printed at an interrupt
	add := o.selected(func(it *pcap.Item) {
		selected++
		w.Add(it)
	})
	d := pcap.NewDecoder(opts, func(it *pcap.Item) {
		if in.Streams() {
			sum.Add(it)
		}
		add(it)
	})
	err := d.Decode(in)
	if j, ok := w.(*report.JSONLines); ok {
		j.NotUnderstood(d.Stats())
	}
	if werr := w.Flush(); werr != nil {
		return nil // run reports the error, which output has kept
	}
	if cmd.Context().Err() != nil {
		sum.Report(d).WriteText(stderr, cli.LineWidth(stderr))
	}
	noteUndecoded(stderr, in.Name, d.Stats())
	if err != nil {
		return &cli.Error{Status: cli.StatusFailed, Err: err}
	}
	return o.verdict(stderr, in.Name, selected, d.Stats())
}

// selected returns a function that passes the items of the job of --job to add, or all items without --job.
func (o *decodeOptions) selected(add func(*pcap.Item)) func(*pcap.Item) {
	if o.job == "" {
		return add
	}
	tracker := jobs.New()
	tracker.Trace(o.job, add)
	return tracker.Add
}

// noteUndecoded writes the numbers of packets that were not decoded, with the reason.
func noteUndecoded(stderr io.Writer, name string, st pcap.Stats) {
	for _, header := range slices.Sorted(maps.Keys(st.NotUnderstood)) {
		fmt.Fprintf(stderr, "jobwire: %s: %s not decoded: jobwire does not read %s\n", name,
			cli.Counted(st.NotUnderstood[header], "packet"), header)
	}
	if st.Damaged > 0 {
		fmt.Fprintf(stderr, "jobwire: %s: %s not decoded: damaged headers\n", name, cli.Counted(st.Damaged, "packet"))
	}
	if st.Dropped > 0 {
		fmt.Fprintf(stderr, "jobwire: %s: %s dropped: they arrived faster than they were read\n", name,
			cli.Counted(st.Dropped, "packet"))
	}
}

// verdict notes the bytes that --audit could not check, and returns the error with the exit status after a capture was
// decoded: no messages of the job, or violations.
func (o *decodeOptions) verdict(stderr io.Writer, name string, selected int, st pcap.Stats) error {
	if o.audit && st.Skipped > 0 {
		fmt.Fprintf(stderr, "jobwire: %s: %d bytes on %d connections are not checked: bytes before them are missing in the capture, and it does not prove where messages begin in these bytes. To list the bytes, run decode without --audit\n", name, st.Skipped, st.SkippedConnections)
	}
	switch {
	case o.job != "" && selected == 0:
		return &cli.Error{Status: cli.StatusFailed, Err: fmt.Errorf("%s: no message of job %s", name, o.job)}
	case o.audit && st.Violations > 0:
		return &cli.Error{Status: cli.StatusFailed, Err: fmt.Errorf("%s: %d messages violate a rule", name, st.Violations)}
	case o.audit && st.Messages == 0:
		return cli.Usage(fmt.Errorf("%s: no message was decoded, so that nothing could be checked", name))
	}
	return nil
}

// summarize prints counts, and writes the HTML report. It does so too if the capture is damaged.
func (o *decodeOptions) summarize(cmd *cobra.Command, in *pcap.Input, opts pcap.Options) error {
	var sum report.Summary
	opts.Check, opts.Likely = true, !o.certain
	add := sum.Add
	var file *cli.TextFile
	page := report.New()
	if o.html != "" {
		var err error
		if file, err = cli.CreateText(o.html); err != nil {
			return cli.Usage(err)
		}
		defer file.Close()
		add = func(it *pcap.Item) {
			sum.Add(it)
			page.Add(it)
		}
	}
	d := pcap.NewDecoder(opts, add)
	damage := d.Decode(in)
	noteUndecoded(cmd.ErrOrStderr(), in.Name, d.Stats())
	if err := o.print(cmd, sum.Report(d)); err != nil {
		return err
	}
	if file != nil {
		if err := errors.Join(page.WriteHTML(file, filepath.Base(in.Name), d), file.Close()); err != nil {
			return err
		}
	}
	return cli.Failed(damage)
}

// countJobs prints statistics of jobs.
func (o *decodeOptions) countJobs(cmd *cobra.Command, in *pcap.Input, opts pcap.Options) error {
	tracker := jobs.New()
	d := pcap.NewDecoder(opts, tracker.Add)
	damage := d.Decode(in)
	noteUndecoded(cmd.ErrOrStderr(), in.Name, d.Stats())
	r := tracker.Report()
	r.NotUnderstood = d.Stats().NotUnderstood
	if err := o.print(cmd, r); err != nil {
		return err
	}
	return cli.Failed(damage)
}

// print prints a report in the format of --format.
func (o *decodeOptions) print(cmd *cobra.Command, r interface {
	WriteText(w io.Writer, width int) error
}) error {
	w := cmd.OutOrStdout()
	if o.format == "json" {
		return cli.WriteJSON(w, r)
	}
	return r.WriteText(w, cli.LineWidth(w))
}

// copyPackets copies the packets of the selected messages. It reads the capture twice: first to find the messages, then
// to copy packets.
func (o *decodeOptions) copyPackets(cmd *cobra.Command, in *pcap.Input, opts pcap.Options) error {
	if in.IsFile(o.output) {
		return cli.Usage(fmt.Errorf("--output: expected another file than the capture, got %s", o.output))
	}
	if err := in.Keep(); err != nil {
		return err
	}
	x, selected := pcap.NewExcerpt(), 0
	d := pcap.NewDecoder(opts, o.selected(func(it *pcap.Item) {
		selected++
		x.Add(it)
	}))
	damage := d.Decode(in)
	noteUndecoded(cmd.ErrOrStderr(), in.Name, d.Stats())
	src, err := in.Again()
	if err != nil {
		return errors.Join(damage, err)
	}
	packets := 0
	err = writeOutput(cmd, o.output, func(w io.Writer) error {
		buf := bufio.NewWriter(w)
		var err error
		packets, err = x.Write(buf, src)
		return errors.Join(err, buf.Flush())
	})
	switch {
	case damage != nil: // x.Write has returned the same error
		return cli.Failed(damage)
	case err != nil:
		return cli.Usage(err)
	}
	stderr := cmd.ErrOrStderr()
	fmt.Fprintf(stderr, "jobwire: %s: %s with %s\n", o.output, cli.Counted(packets, "packet"),
		cli.Counted(selected, "selected item"))
	err = o.verdict(stderr, in.Name, selected, d.Stats())
	if n := x.LeftOut(); n > 0 {
		err = &cli.Error{Status: cli.StatusFailed, Err: fmt.Errorf("%s: %d selected items are left out, because they are on more connections than fit in memory; select fewer with --filter or --port", in.Name, n)}
	}
	return err
}

// writeTranscripts writes the connections of a capture as transcripts to a directory, and prints their names.
func writeTranscripts(w, stderr io.Writer, in pcap.Source, name, dir string, opts pcap.Options) error {
	t := replay.New()
	d := pcap.NewDecoder(opts, t.Add)
	damage := d.Decode(in)
	noteUndecoded(stderr, name, d.Stats())
	all, err := t.WriteDir(filepath.Base(name), dir)
	for _, one := range all {
		note := ""
		if one.Incomplete {
			note = "; some messages cannot be replayed, see the comments in the file"
		}
		fmt.Fprintf(w, "%s: %d connections, %d steps%s\n", filepath.Join(dir, one.Name), one.Connections, one.Steps, note)
	}
	if n := t.Left(); n > 0 {
		fmt.Fprintf(stderr, "jobwire: %d messages are left out, because more messages than fit in memory were captured; select fewer with --filter or --port\n", n)
	}
	if n := t.Unsupported(); n > 0 {
		fmt.Fprintf(stderr, "jobwire: %d connections are left out: their protocol is unknown, or none of their messages can be replayed\n", n)
	}
	switch {
	case errors.Is(err, os.ErrExist):
		return cli.Usage(fmt.Errorf("%w: jobwire does not overwrite transcripts; name another directory", err))
	case err != nil:
		return cli.Usage(err)
	case damage == nil && len(all) == 0:
		return &cli.Error{Status: cli.StatusFailed, Err: fmt.Errorf("%s: no messages that can be written as a transcript", name)}
	}
	return cli.Failed(damage)
}
