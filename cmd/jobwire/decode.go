package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"jobwire/pcap"
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
	color    colorFlag
}

func newDecode() *cobra.Command {
	o := &decodeOptions{}
	cmd := &cobra.Command{
		Use:   "decode {FILE | --interface NAME} [flags]",
		Short: "Explain a capture",
		Long: `decode reads a capture, pcap or pcapng, packed with gzip or zstd or not, from a
file, from standard input or, on Linux, off an interface as it passes, and shows
what clients, workers and servers say in it as an annotated transcript. The protocol
is told by content, on any port. What is missing in the capture is shown in its place.

--filter has terms KEY=PATTERN or KEY!=PATTERN, parted by blanks. Keys are type,
protocol, connection, to (server or client), role, rule, after and before (since the
first packet, as 2s), and the arguments of messages: function, handle, tube, id.

--audit judges messages by their form and by what went before them on all
connections of their server. The rules are those of "jobwire rules". It says only what
the capture proves: of connections whose beginning or any part is missing in it,
nothing but their form is judged. One address is taken for one server.

--transcripts writes a file for each set of connections to one server that mention a
job, a function or a tube in common; all connections to a Redis are one set, and those
that mention nothing are another. Job handles become names, which "jobwire play" binds
to what the next server answers, and times near the present become $now. Messages stand in
an order that gives the same outcome when they are sent one after another, as far as the
capture tells it; short pauses are dropped. What another server may word otherwise, such as
statistics, becomes *. What is missing, or cannot be performed, is a comment.

Exit status 1 if the file is damaged or cut off: what stands before is shown.`,
		Example: `  jobwire decode capture.pcap
  tcpdump -i lo -U -w - port 4730 | jobwire decode -
  jobwire decode --interface lo --port 4730 --lines
  jobwire decode capture.pcapng.gz --summary
  jobwire decode capture.pcap --filter 'handle=H:lap:7' --lines
  jobwire decode capture.pcap --jobs
  jobwire decode capture.pcap --job H:lap:7
  jobwire decode capture.pcap --audit
  jobwire decode capture.pcap --html capture.html
  jobwire decode capture.pcap --transcripts talks && jobwire play talks/*.wire
  jobwire decode capture.pcap --port 11400 --protocol beanstalk --json`,
		Args: o.inputs,
		RunE: o.execute,
	}
	f := cmd.Flags()
	f.StringVar(&o.protocol, "protocol", "", "what is spoken, instead of telling it by content: a `PROTOCOL`")
	f.UintSliceVar(&o.ports, "port", nil, "only connections to this server `PORT`; may be repeated")
	f.StringVar(&o.device, "interface", "", "read off an interface `NAME`, or any, until Ctrl-C (Linux, needs CAP_NET_RAW)")
	f.BoolVar(&o.summary, "summary", false, "only count messages by type and direction")
	f.BoolVar(&o.json, "json", false, "a line of JSON for each message")
	f.StringVar(&o.format, "format", "text", "of --summary and --jobs: text or json")
	f.BoolVar(&o.full, "full", false, "all of long payloads, and the bytes of unknown protocols")
	f.BoolVar(&o.hex, "hex", false, "text protocols in hex too")
	f.BoolVar(&o.lines, "lines", false, "a line for each message instead of its bytes")
	f.BoolVar(&o.utc, "utc", false, "times in UTC")
	f.BoolVar(&o.jobs, "jobs", false, "only what became of the jobs, by function or tube")
	f.StringVar(&o.job, "job", "", "only the messages of one job, on whatever connections: by its `HANDLE` or ID, or FUNCTION:ID")
	f.StringVar(&o.html, "html", "", "draw the lives of jobs and the traffic on one page, into this `FILE`; - is standard output")
	f.StringVar(&o.scripts, "transcripts", "", "write the conversations as files that play performs, into this `DIR`")
	f.StringVar(&o.filter, "filter", "", "only what matches all `TERMS`, as in 'type=WORK_* function=reverse to=server'")
	f.BoolVar(&o.audit, "audit", false, "only messages that break a rule; exit status 1 if there are any")
	o.color.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("summary", "json", "jobs", "transcripts", "html")
	cmd.MarkFlagsMutuallyExclusive("lines", "json", "transcripts", "html")
	cmd.MarkFlagsMutuallyExclusive("summary", "jobs", "job", "transcripts", "html", "audit")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RegisterFlagCompletionFunc("protocol", cobra.FixedCompletions(systemNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// memory is the size of the heap, in bytes, near which the collector hurries.
const memory = 48 << 20

// itemWriter shows what a decoder reads.
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
		return usage(fmt.Errorf("--format %q: it is text or json", o.format))
	}
	if o.format == "json" && !o.summary && !o.jobs {
		return usage(errors.New("--format json is for --summary and --jobs; for each message there is --json"))
	}
	color, err := o.color.on(cmd.OutOrStdout())
	if err != nil {
		return err
	}
	in, err := o.open(cmd, args, opts.Ports)
	if err != nil {
		return err
	}
	defer in.close()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory))
	switch {
	case o.scripts != "":
		return o.transcribe(cmd, in, opts)
	case o.html != "":
		return o.page(cmd, in, opts)
	case o.summary:
		var sum pcap.Summary
		return o.count(cmd.OutOrStdout(), in, opts, sum.Add, func(d *pcap.Decoder) report { return sum.Report(d) })
	case o.jobs:
		jobs := pcap.NewJobs()
		return o.count(cmd.OutOrStdout(), in, opts, jobs.Add, func(*pcap.Decoder) report { return jobs.Report() })
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
	var jobs *pcap.Jobs
	if o.job != "" {
		jobs = pcap.NewJobs()
		jobs.Trace(o.job, w.Add)
		add = jobs.Add
	}
	d := pcap.NewDecoder(opts, add)
	err = d.Decode(in)
	if werr := w.Flush(); werr != nil {
		return nil // standard output remembers why
	}
	if err != nil {
		return &exit{exitFellShort, err}
	}
	if n := d.Stats().Dropped; n > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s: %d packets came too fast to be captured\n", in.name, n)
	}
	if jobs != nil && jobs.Traced() == 0 {
		return &exit{exitFellShort, fmt.Errorf("%s: no message is about a job %s", in.name, o.job)}
	}
	if n := d.Stats().Violations; o.audit && n > 0 {
		return &exit{exitFellShort, fmt.Errorf("%s: %d messages break a rule", in.name, n)}
	}
	return nil
}

func (o *decodeOptions) options() (pcap.Options, error) {
	var opts pcap.Options
	for _, p := range o.ports {
		if p < 1 || p > math.MaxUint16 {
			return opts, usage(fmt.Errorf("--port %d: no TCP port", p))
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
		sys, err := systemNamed(o.protocol)
		if err != nil {
			return opts, err
		}
		opts.Protocol = sys.protocol
	}
	return opts, nil
}

// report is what is told of a whole capture.
type report interface {
	WriteText(io.Writer) error
	WriteJSON(io.Writer) error
}

// count reads a capture and reports on it, also on one that is damaged.
func (o *decodeOptions) count(w io.Writer, in pcap.Source, opts pcap.Options, add func(*pcap.Item), tell func(*pcap.Decoder) report) error {
	d := pcap.NewDecoder(opts, add)
	err := d.Decode(in)
	if r := tell(d); o.format == "json" {
		r.WriteJSON(w)
	} else {
		r.WriteText(w)
	}
	if err != nil {
		return &exit{exitFellShort, err}
	}
	return nil
}
