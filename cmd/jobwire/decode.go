package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"jobwire/catalog"
	"jobwire/pcap"
	"jobwire/pcap/jobs"
)

type decodeOptions struct {
	protocol string
	ports    []uint
	device   string
	summary  bool
	json     bool
	format   string
	full     bool
	hex      bool
	lines    bool
	utc      bool
	filter   string
	audit    bool
	jobs     bool
	job      string
	scripts  string
	html     string
	write    string
	tlsKeys  string
	color    colorFlag
}

func newDecode() *cobra.Command {
	o := &decodeOptions{}
	cmd := &cobra.Command{
		Use:   "decode {FILE | --interface NAME} [flags]",
		Short: "Decode a packet capture",
		Args:  o.inputs,
		RunE:  o.execute,
	}
	f := cmd.Flags()
	f.StringVar(&o.protocol, "protocol", "", "`PROTOCOL` of all connections (default: detected for each connection)")
	f.UintSliceVar(&o.ports, "port", nil, "decode only connections to this server `PORT`; repeatable")
	f.StringVar(&o.device, "interface", "", "capture on the interface `NAME`, or on any (Linux)")
	f.BoolVar(&o.summary, "summary", false, "print how many messages of each type each direction has, instead of messages")
	f.BoolVar(&o.json, "json", false, "print each message as a JSON object on its own line")
	f.StringVar(&o.format, "format", "text", "`FORMAT` of --summary and --jobs: text or json")
	f.BoolVar(&o.full, "full", false, "print long payloads in full, and the bytes of unknown protocols")
	f.BoolVar(&o.hex, "hex", false, "show bytes in hex for text protocols too")
	f.BoolVar(&o.lines, "lines", false, "print each message on one line, without its bytes")
	f.BoolVar(&o.utc, "utc", false, "print times in UTC (default: local time)")
	f.BoolVar(&o.jobs, "jobs", false, "print statistics of the jobs of each queue (function or tube), and jobs with anomalies, instead of messages")
	f.StringVar(&o.job, "job", "", "print only the messages of one job: its `HANDLE` (Gearman), ID (Beanstalk) or FUNCTION:ID (GearMonkey)")
	f.StringVar(&o.html, "html", "", "`FILE` for an HTML report (-: standard output)")
	f.StringVar(&o.scripts, "transcripts", "", "directory `DIR` in which to write transcripts for 'jobwire play'")
	f.StringVar(&o.tlsKeys, "tls-keys", "", "TLS key log `FILE` (SSLKEYLOGFILE) with which to decrypt connections, in addition to keys in the capture")
	f.StringVar(&o.write, "write", "", "pcapng `FILE` for the packets of the selected messages (-: standard output)")
	f.StringVar(&o.filter, "filter", "", "print only messages that match all `TERMS`, such as 'type=WORK_* to=server'")
	f.BoolVar(&o.audit, "audit", false, "print only messages that violate a rule")
	o.color.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("summary", "json", "jobs", "transcripts", "html", "write")
	cmd.MarkFlagsMutuallyExclusive("lines", "json", "transcripts", "html", "write")
	cmd.MarkFlagsMutuallyExclusive("summary", "jobs", "job", "transcripts", "html", "audit")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("protocol", cobra.FixedCompletions(catalog.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// memory is the soft memory limit, in bytes. Near it, the garbage collector runs more often.
const memory = 48 << 20

// itemWriter prints the items that a decoder finds.
type itemWriter interface {
	Add(*pcap.Item)
	Flush() error
}

func (o *decodeOptions) execute(cmd *cobra.Command, args []string) error {
	opts, err := o.options()
	if err != nil {
		return err
	}
	if o.format != "text" && o.format != "json" {
		return usage(fmt.Errorf("--format: expected text or json, got %q", o.format))
	}
	if o.format == "json" && !o.summary && !o.jobs {
		return usage(errors.New("--format json requires --summary or --jobs; use --json for messages"))
	}
	color, err := o.color.on(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	keys, err := o.keys()
	if err != nil {
		return err
	}
	defer keys.close()
	opts.Keys = keys.Keys
	in, err := o.open(cmd, args, opts.Ports)
	if err != nil {
		return err
	}
	defer in.close()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory))
	switch {
	case o.write != "":
		return o.excerpt(cmd, args, in, opts)
	case o.scripts != "":
		return o.transcribe(cmd, in, opts)
	case o.html != "":
		return o.page(cmd, in, opts)
	case o.summary:
		var sum pcap.Summary
		return o.count(cmd.OutOrStdout(), in, opts, sum.Add, func(d *pcap.Decoder) captureReport { return sum.Report(d) })
	case o.jobs:
		tracker := jobs.New()
		return o.count(cmd.OutOrStdout(), in, opts, tracker.Add, func(*pcap.Decoder) captureReport { return tracker.Report() })
	}
	var w itemWriter
	if o.json {
		w = pcap.NewJSONLines(cmd.OutOrStdout(), o.full)
	} else {
		show := pcap.ListingOptions{Full: o.full, Hex: o.hex, Color: color, Lines: o.lines}
		if o.utc {
			show.Local = time.UTC
		}
		w = pcap.NewListing(cmd.OutOrStdout(), show)
	}
	in.OnIdle(func() { w.Flush() })
	add := w.Add
	tracker := jobs.New()
	if o.job != "" {
		tracker.Trace(o.job, w.Add)
		add = tracker.Add
	}
	var sum pcap.Summary
	if o.device != "" || args[0] == "-" {
		list := add
		add = func(it *pcap.Item) {
			sum.Add(it)
			list(it)
		}
	}
	d := pcap.NewDecoder(opts, add)
	err = d.Decode(in)
	if werr := w.Flush(); werr != nil {
		return nil // run reports the error, which output has kept
	}
	if cmd.Context().Err() != nil {
		sum.Report(d).WriteText(cmd.ErrOrStderr())
	}
	if err != nil {
		return &exit{exitFailed, err}
	}
	o.noteSkipped(cmd.ErrOrStderr(), in.name, d.Stats())
	if n := d.Stats().Dropped; n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s: %d packets dropped: they arrived faster than they were read\n", in.name, n)
	}
	return o.verdict(in.name, tracker.Traced(), d.Stats())
}

// noteSkipped prints the number of bytes that the audit could not check, if there are any.
func (o *decodeOptions) noteSkipped(w io.Writer, name string, st pcap.Stats) {
	if o.audit && st.Skipped > 0 {
		fmt.Fprintf(w, "jobwire: %s: %d bytes on %d connections are not checked: bytes before them are missing in the capture, and it does not prove where messages begin in these bytes. To list the bytes, run decode without --audit\n", name, st.Skipped, st.SkippedConnections)
	}
}

func (o *decodeOptions) options() (pcap.Options, error) {
	var opts pcap.Options
	for _, p := range o.ports {
		if p < 1 || p > math.MaxUint16 {
			return opts, usage(fmt.Errorf("--port: expected 1 to 65535, got %d", p))
		}
		opts.Ports = append(opts.Ports, uint16(p))
	}
	if terms := o.filter; terms != "" || o.audit {
		if opts.Audit = o.audit; o.audit {
			terms += " rule=*"
		}
		var err error
		if opts.Filter, err = pcap.ParseFilter(terms); err != nil {
			return opts, usage(fmt.Errorf("--filter: %w", err))
		}
	}
	if o.protocol != "" {
		sys, err := entryNamed(o.protocol)
		if err != nil {
			return opts, err
		}
		opts.Protocol = sys.Protocol
	}
	return opts, nil
}

// captureReport is a report about a whole capture, which can be written as JSON too.
type captureReport interface {
	WriteText(io.Writer) error
}

// count reads a capture and writes a report about it, also if the capture is damaged.
func (o *decodeOptions) count(w io.Writer, in pcap.Source, opts pcap.Options, add func(*pcap.Item), report func(*pcap.Decoder) captureReport) error {
	d := pcap.NewDecoder(opts, add)
	err := d.Decode(in)
	if r := report(d); o.format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.Encode(r)
	} else {
		r.WriteText(w)
	}
	if err != nil {
		return &exit{exitFailed, err}
	}
	return nil
}
