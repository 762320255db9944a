package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Report is what an audit has found.
type Report struct {
	Protocol    *codec.Protocol
	Server      bool // it was judged, too
	Took        time.Duration
	Connections int
	Messages    [2]int // by side
	Breaches    []Breach
	Exercise    []Statement

	roles codec.Role // that somebody surely had
}

// Violations counts them.
func (r *Report) Violations() int {
	n := 0
	for i := range r.Breaches {
		n += r.Breaches[i].Count
	}
	return n
}

// Part is how much of what the document says of one end was exercised.
type Part struct {
	Who        string
	Statements []Statement
	Done       int // of them
}

// Parts sorts the statements by whom they bind: each of the roles, and the server. One that binds
// several roles stands with each of them, with the messages that were its own or may have been.
func (r *Report) Parts() []Part {
	var parts []Part
	add := func(who string, pick func(*Statement) (times int, bound bool)) {
		p := Part{Who: who}
		for _, st := range r.Exercise {
			times, bound := pick(&st)
			if !bound {
				continue
			}
			if st.Times = times; times > 0 {
				p.Done++
			}
			p.Statements = append(p.Statements, st)
		}
		if p.Done > 0 { // else nobody was one
			parts = append(parts, p)
		}
	}
	for i, name := range r.Protocol.Roles {
		if r.roles != 0 && r.roles&(1<<i) == 0 {
			continue // what was said may have been its own, but nobody was surely one
		}
		add(name, func(st *Statement) (int, bool) { return st.by[i], st.Bound == codec.Peer && st.roles&(1<<i) != 0 })
	}
	add(r.Protocol.ServerName, func(st *Statement) (int, bool) { return st.Times, st.Bound == codec.Server })
	return parts
}

// Percent is the share of the statements that were exercised.
func (p *Part) Percent() int { return 100 * p.Done / len(p.Statements) }

// Shown are how findings are shown.
type Shown struct {
	Color bool
	Hex   bool
}

func (o *Shown) printer(p *codec.Protocol) *transcript.Printer {
	return &transcript.Printer{Protocol: p, Fold: 4, Color: o.Color, Hex: o.Hex}
}

// actor names the connecting end.
func (f *Finding) actor() string { return fmt.Sprintf("%s %d", f.Role, f.Conn) }

// who names the one who has broken a rule.
func (f *Finding) who(p *codec.Protocol) string {
	if f.By == codec.Server {
		return p.ServerName
	}
	return f.actor()
}

// AppendLine appends a finding in one line, for those who follow an audit as it happens.
func (f *Finding) AppendLine(dst []byte, p *codec.Protocol, color bool) []byte {
	on, off := "", ""
	if color {
		on, off = "\x1b[31m", "\x1b[0m"
	}
	what := "what is no message"
	if f.Frame.Type != nil {
		what = f.Frame.Type.Name
	}
	return fmt.Appendf(dst, "%8.3fs  %s: %s: %s%s%s: byte %d, %s\n", f.At.Seconds(), f.who(p), what, on, f.Err.Rule, off, f.Err.Offset, f.Err.Detail)
}

// AppendText appends a finding with its bytes, the offending one marked, and what was said
// before.
func (f *Finding) AppendText(dst []byte, p *codec.Protocol, o Shown) []byte {
	pr := o.printer(p)
	for i := range f.Before {
		dst = pr.AppendLine(dst, f.actor(), &f.Before[i])
	}
	return pr.AppendBroken(dst, f.actor(), &f.Frame, f.Frame.Raw, f.Err)
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer, o Shown) error {
	var out []byte
	for i := range r.Breaches {
		b := &r.Breaches[i]
		who := "a peer"
		if b.By == codec.Server {
			who = "the " + r.Protocol.ServerName
		}
		times := ""
		if b.Count > 1 {
			times = fmt.Sprintf(", %d times", b.Count)
		}
		out = fmt.Appendf(out, "%s  %s, by %s%s\n  %s\n", b.Rule.ID, b.Rule.Level, who, times, b.Rule.Text)
		for k := range b.First {
			f := &b.First[k]
			out = fmt.Appendf(out, "\n  after %.3f s, %s:\n", f.At.Seconds(), f.Err.Detail)
			for line := range bytes.Lines(f.AppendText(nil, r.Protocol, o)) {
				out = append(append(out, "    "...), line...)
			}
		}
		out = append(out, '\n')
	}
	out = fmt.Appendf(out, "%d connections, %d messages to the server and %d from it in %.1f s; %d violations of %d rules\n",
		r.Connections, r.Messages[codec.Peer], r.Messages[codec.Server], r.Took.Seconds(), r.Violations(), len(r.Breaches))
	for _, p := range r.Parts() {
		out = fmt.Appendf(out, "\n%s: %d of %d statements were exercised, %d %%\n", p.Who, p.Done, len(p.Statements), p.Percent())
		var done, not []string
		for _, st := range p.Statements {
			name := strings.TrimPrefix(string(st.Rule.ID), r.Protocol.Name+".")
			if st.Times > 0 {
				done = append(done, name)
			} else {
				not = append(not, name)
			}
		}
		out = appendNames(out, "  exercised:", done)
		out = appendNames(out, "  not:", not)
	}
	_, err := w.Write(out)
	return err
}

// appendNames appends names, broken into lines.
func appendNames(dst []byte, title string, names []string) []byte {
	if len(names) == 0 {
		return dst
	}
	const width = 110
	dst = append(dst, title...)
	col := len(title)
	for _, n := range names {
		if col+1+len(n) > width {
			dst = append(dst, "\n   "...)
			col = 3
		}
		dst = append(append(dst, ' '), n...)
		col += 1 + len(n)
	}
	return append(dst, '\n')
}

// jsonFinding is a finding in a report for programs.
type jsonFinding struct {
	Connection int      `json:"connection"`
	Role       string   `json:"role"`
	Seconds    float64  `json:"seconds"`
	Type       string   `json:"type,omitempty"`
	Offset     int      `json:"offset"`
	Field      string   `json:"field,omitempty"`
	Detail     string   `json:"detail"`
	Bytes      []byte   `json:"bytes"` // at most maxJSON of them
	Size       int      `json:"size"`
	Before     []string `json:"before"`
}

// maxJSON is how much of a message a report for programs has, in bytes.
const maxJSON = 4 << 10

// WriteJSON writes the report as one object.
func (r *Report) WriteJSON(w io.Writer) error {
	type breach struct {
		Rule  codec.RuleID  `json:"rule"`
		Level codec.Level   `json:"level"`
		By    string        `json:"by"`
		Count int           `json:"count"`
		Text  string        `json:"text"`
		First []jsonFinding `json:"first"`
	}
	type part struct {
		Who       string         `json:"who"`
		Percent   int            `json:"percent"`
		Exercised []codec.RuleID `json:"exercised"`
		Not       []codec.RuleID `json:"not_exercised"`
	}
	out := struct {
		Protocol    string   `json:"protocol"`
		Seconds     float64  `json:"seconds"`
		Connections int      `json:"connections"`
		ToServer    int      `json:"messages_to_server"`
		FromServer  int      `json:"messages_from_server"`
		Violations  int      `json:"violations"`
		Breaches    []breach `json:"breaches"`
		Parts       []part   `json:"statements"`
	}{r.Protocol.Name, r.Took.Seconds(), r.Connections, r.Messages[codec.Peer], r.Messages[codec.Server], r.Violations(), []breach{}, []part{}}
	for i := range r.Breaches {
		b := &r.Breaches[i]
		row := breach{b.Rule.ID, b.Rule.Level, b.By.String(), b.Count, b.Rule.Text, nil}
		for k := range b.First {
			row.First = append(row.First, b.First[k].json(r.Protocol))
		}
		out.Breaches = append(out.Breaches, row)
	}
	for _, p := range r.Parts() {
		row := part{p.Who, p.Percent(), []codec.RuleID{}, []codec.RuleID{}}
		for _, st := range p.Statements {
			if st.Times > 0 {
				row.Exercised = append(row.Exercised, st.Rule.ID)
			} else {
				row.Not = append(row.Not, st.Rule.ID)
			}
		}
		out.Parts = append(out.Parts, row)
	}
	return writeJSON(w, out)
}

func (f *Finding) json(p *codec.Protocol) jsonFinding {
	j := jsonFinding{Connection: f.Conn, Role: f.Role, Seconds: f.At.Seconds(), Offset: f.Err.Offset, Field: f.Err.Field, Detail: f.Err.Detail,
		Bytes: slices.Clone(f.Frame.Raw[:min(len(f.Frame.Raw), maxJSON)]), Size: len(f.Frame.Raw), Before: []string{}}
	if f.Frame.Type != nil {
		j.Type = f.Frame.Type.Name
	}
	pr := (&Shown{}).printer(p)
	for i := range f.Before {
		j.Before = append(j.Before, strings.TrimSuffix(string(pr.AppendLine(nil, f.actor(), &f.Before[i])), "\n"))
	}
	return j
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
