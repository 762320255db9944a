package play

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/prose"
)

// ReportOptions are the options of a report.
type ReportOptions struct {
	Bytes  bool   // every message in byte form; otherwise only the one that failed
	Full   bool   // long payloads in full
	Hex    bool   // text protocols in hex too
	Color  bool   // with terminal escape sequences
	Indent string // before every line
}

// foldLines is how many lines of a long field a report shows.
const foldLines = 4

// WriteReport writes the conversation of a run and, if the run failed, what was expected, what was received instead,
// and the invalid bytes.
func WriteReport(w io.Writer, s *transcript.Script, r *Result, o ReportOptions) error {
	pr := &transcript.Printer{Protocol: s.Protocol, Fold: foldLines, Color: o.Color, Hex: o.Hex}
	if o.Full {
		pr.Fold = 0
	}
	var out []byte
	for i := range r.Events {
		ev := &r.Events[i]
		if f := r.Failure; f != nil && f.Event != nil && ev.At == f.Event.At && ev.Step == f.Index && ev.From == f.Step.From {
			continue // shown below
		}
		out = appendEvent(out, pr, ev, o.Bytes)
	}
	if r.Failure != nil {
		out = r.Failure.append(out, pr, s.File, prose.Width-len(o.Indent))
	}
	return writeIndented(w, out, o.Indent)
}

// excerptEvents is how many messages an excerpt shows before the step that failed.
const excerptEvents = 2

// Excerpt returns the end of a conversation in a few lines of at most width bytes: the last messages that were sent
// and, if the run failed, what was expected and what was received instead.
func Excerpt(s *transcript.Script, r *Result, width int) []string {
	pr := &transcript.Printer{Protocol: s.Protocol, Fold: foldLines}
	var lines []string
	add := func(title string, text []byte) {
		line, more, _ := bytes.Cut(append([]byte(title), text...), []byte("\n"))
		if cut := " ..."; len(line) > width || len(bytes.TrimSpace(more)) > 0 && title == "" {
			line = append(line[:min(len(line), width-len(cut))], cut...)
		}
		lines = append(lines, string(line))
	}
	for i := len(r.Events) - 1; i >= 0 && len(lines) < excerptEvents; i-- {
		if ev := &r.Events[i]; ev.From == codec.Peer && ev.Verb <= transcript.Raw {
			add("", appendEvent(nil, pr, ev, false))
		}
	}
	slices.Reverse(lines)
	f := r.Failure
	if f == nil {
		return lines
	}
	step, _ := transcript.AppendStep(nil, s.Protocol, f.Step)
	add("expected  ", bytes.ReplaceAll(bytes.TrimSpace(step), []byte("\n"), nil))
	switch ev := f.Event; {
	case ev == nil && f.Waited > 0:
		add("received  ", fmt.Appendf(nil, "nothing within %v", f.Waited))
	case ev != nil && ev.Verb <= transcript.Raw:
		add("received  ", pr.AppendLine(nil, ev.Actor.Name, &ev.Frame))
	case ev != nil:
		add("received  ", appendEvent(nil, pr, ev, false))
	}
	return lines
}

// writeIndented writes a text with the indent before each line that is not empty.
func writeIndented(w io.Writer, text []byte, indent string) error {
	var out []byte
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) > 0 {
			out = append(out, indent...)
		}
		out = append(out, line...)
	}
	_, err := w.Write(out)
	return err
}

// appendEvent appends one event of a conversation in the notation of transcripts, as a line or, if asBytes is set, with
// the bytes of the message and their meaning.
func appendEvent(dst []byte, pr *transcript.Printer, ev *Event, asBytes bool) []byte {
	switch ev.Verb {
	case transcript.Send, transcript.Raw:
		switch {
		case ev.Err != nil:
			dst = ev.appendBroken(dst, pr, ev.Err)
		case asBytes:
			dst = append(pr.AppendFrame(dst, ev.Actor.Name, &ev.Frame), '\n')
		default:
			dst = pr.AppendLine(dst, ev.Actor.Name, &ev.Frame)
		}
		return ev.appendCut(dst)
	case transcript.Nothing:
		dst = pr.AppendEvent(dst, ev.Actor.Name, ev.From, ev.Verb)
		return fmt.Appendf(dst[:len(dst)-1], " for %v\n", ev.For)
	case transcript.Urgent:
		dst = pr.AppendEvent(dst, ev.Actor.Name, ev.From, ev.Verb)
		return fmt.Appendf(dst[:len(dst)-1], " %q\n", ev.Frame.Raw)
	}
	return pr.AppendEvent(dst, ev.Actor.Name, ev.From, ev.Verb)
}

// appendBroken appends the message with an error in it.
func (ev *Event) appendBroken(dst []byte, pr *transcript.Printer, e *codec.Error) []byte {
	shown := *e
	shown.Offset = min(e.Offset, len(ev.Frame.Raw))
	return pr.AppendBroken(dst, ev.Actor.Name, &ev.Frame, ev.Frame.Raw, &shown)
}

// appendCut appends how many bytes of the message are missing.
func (ev *Event) appendCut(dst []byte) []byte {
	if ev.Cut == 0 {
		return dst
	}
	return fmt.Appendf(dst, "# %d more bytes, which were not kept\n", ev.Cut)
}

// append appends the step that failed. Text is wrapped at width, in bytes.
func (f *Failure) append(dst []byte, pr *transcript.Printer, file string, width int) []byte {
	dst = fmt.Appendf(dst, "\nexpected (%s:%d):\n", file, f.Step.Line)
	dst, _ = transcript.AppendStep(dst, pr.Protocol, f.Step)
	ev := f.Event
	if ev == nil {
		return fmt.Appendf(dst, "%s\n", prose.Wrap("", "", f.Text, width))
	}
	dst = fmt.Appendf(dst, "received after %v:\n", ev.At.Round(100*time.Microsecond))
	message := ev.Verb == transcript.Send || ev.Verb == transcript.Raw
	switch {
	case message && f.Diff != nil:
		// The bytes are a valid message, but not the expected one.
		dst = ev.appendBroken(dst, pr, &codec.Error{Rule: "differs", Offset: f.Diff.Offset, Detail: f.Diff.String()})
		dst = ev.appendCut(dst)
	case message && ev.Err == nil:
		dst = ev.appendCut(pr.AppendFrame(dst, ev.Actor.Name, &ev.Frame))
	default:
		dst = appendEvent(dst, pr, ev, true)
	}
	if message && (f.Diff != nil || ev.Err != nil) && f.Reason != TooLate {
		return dst
	}
	return fmt.Appendf(dst, "%s\n", prose.Wrap("", "", f.Text, width))
}
