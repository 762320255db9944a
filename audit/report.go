package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"jobwire/audit/behavior"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/prose"
	"jobwire/internal/version"
	"jobwire/judge"
)

// Report is the result of an audit.
type Report struct {
	Protocol    *codec.Protocol
	Server      bool // the messages of the server were checked, too
	Took        time.Duration
	Connections int
	Messages    [2]int // by side
	BrokenRules []BrokenRule
	Rules       []judge.Coverage
	Behavior    []behavior.Finding
	Levels      Levels // the levels whose violations fail; nil: DefaultLevels
	Unfollowed  []Unfollowed
	Outage      *Outage // nil: the server could always be reached

	roles codec.Role // roles that clients and workers certainly had
}

// Violations returns the number of violations.
func (r *Report) Violations() int {
	n := 0
	for i := range r.BrokenRules {
		n += r.BrokenRules[i].Count
	}
	return n
}

// Failed reports whether a rule was violated whose level fails.
func (r *Report) Failed() bool { return r.Levels.fail(r.BrokenRules, r.Behavior) }

// Untested returns why the audit has examined nothing, or "" if a message of an audited side was checked or a violation
// was found. An audit that has examined nothing has not passed.
func (r *Report) Untested() string {
	switch {
	case r.Messages[codec.Peer] > 0 || r.Server && r.Messages[codec.Server] > 0 || len(r.BrokenRules) > 0:
		return ""
	case r.Connections == 0:
		return "nothing was checked: no client or worker connected"
	}
	return "nothing was checked: no client or worker sent a whole message"
}

// Part contains the rules that bind one role of clients or workers, or the server.
type Part struct {
	Role      string         `json:"role"`
	Percent   int            `json:"percent"`   // share of the rules that were checked with at least one message
	Exercised []codec.RuleID `json:"exercised"` // these rules
	Missing   []codec.RuleID `json:"not_exercised"`
}

// Parts groups the rules by the roles that they bind. A rule that binds several roles is in all their parts, and a
// message that several roles may send counts for all of them.
func (r *Report) Parts() []Part {
	parts := []Part{}
	add := func(role string, applied func(*judge.Coverage) (times int, bound bool)) {
		p := Part{Role: role, Exercised: []codec.RuleID{}, Missing: []codec.RuleID{}}
		for i := range r.Rules {
			n := &r.Rules[i]
			switch times, bound := applied(n); {
			case !bound:
			case times > 0:
				p.Exercised = append(p.Exercised, n.Rule.ID)
			default:
				p.Missing = append(p.Missing, n.Rule.ID)
			}
		}
		if len(p.Exercised) > 0 { // otherwise, no client or worker had the role
			p.Percent = 100 * len(p.Exercised) / (len(p.Exercised) + len(p.Missing))
			parts = append(parts, p)
		}
	}
	for i, name := range r.Protocol.Roles {
		if r.roles != 0 && r.roles&(1<<i) == 0 {
			continue // only other roles that may also send these messages have sent them
		}
		add(name, func(n *judge.Coverage) (int, bool) {
			return n.ByRole[i], n.Side == codec.Peer && n.Roles&(1<<i) != 0
		})
	}
	if r.Server {
		add(r.Protocol.ServerName, func(n *judge.Coverage) (int, bool) { return n.Applied(), n.Side == codec.Server })
	}
	return parts
}

// merged returns the parts for a text report: roles with the same rules are one part.
func merged(parts []Part) (all []Part) {
	for _, p := range parts {
		k := slices.IndexFunc(all, func(x Part) bool {
			return slices.Equal(x.Exercised, p.Exercised) && slices.Equal(x.Missing, p.Missing)
		})
		if k >= 0 {
			all[k].Role += ", " + p.Role
		} else {
			all = append(all, p)
		}
	}
	return all
}

// appendTitle appends the roles, and how many of their rules were exercised.
func (p *Part) appendTitle(dst []byte) []byte {
	return fmt.Appendf(dst, "%s: %d of %d rules exercised (%d%%)", p.Role, len(p.Exercised),
		len(p.Exercised)+len(p.Missing), p.Percent)
}

// ServerRules returns the rules that were checked with messages of the server, the strictest level first. It leaves out
// the given rules, which are about the format of messages, if there are others.
func (r *Report) ServerRules(format map[codec.RuleID]bool) []*codec.Rule {
	var all, others []*codec.Rule
	for i := range r.Rules {
		n := &r.Rules[i]
		if n.Side != codec.Server || n.Applied() == 0 {
			continue
		}
		all = append(all, n.Rule)
		if !format[n.Rule.ID] {
			others = append(others, n.Rule)
		}
	}
	if len(others) == 0 {
		others = all
	}
	slices.SortStableFunc(others, func(a, b *codec.Rule) int {
		return cmp.Compare(slices.Index(codec.Levels, a.Level), slices.Index(codec.Levels, b.Level))
	})
	return others
}

// TextOptions contains the options of the text output.
type TextOptions struct {
	Color bool
	Hex   bool
}

func (o *TextOptions) printer(p *codec.Protocol) *transcript.Printer {
	return &transcript.Printer{Protocol: p, Fold: 4, Color: o.Color, Hex: o.Hex}
}

// actor returns the name of the client or worker.
func (f *Finding) actor() string { return fmt.Sprintf("%s %d", f.Role, f.Conn) }

// sender returns the name of the side that violated the rule.
func (f *Finding) sender(p *codec.Protocol) string {
	if f.By == codec.Server {
		return p.ServerName
	}
	return f.actor()
}

// AppendLine appends a finding in one line, for output during an audit.
func (f *Finding) AppendLine(dst []byte, p *codec.Protocol, color bool) []byte {
	on, off := "", ""
	if color {
		on, off = prose.Color("31"), prose.Color("0")
	}
	what := "invalid message"
	if f.Err.Rule == p.Complete {
		what = "incomplete message"
	}
	if f.Frame.Type != nil {
		what = f.Frame.Type.Name
	}
	return fmt.Appendf(dst, "%8.3fs  %s: %s: %s%s%s: %s: %s\n", f.At.Seconds(), f.sender(p), what,
		on, f.Err.Rule, off, f.Err.Place(), f.Err.Detail)
}

// AppendText appends a finding with the bytes of its message, in which the invalid byte is marked, and the preceding
// messages.
func (f *Finding) AppendText(dst []byte, p *codec.Protocol, o TextOptions) []byte {
	pr := o.printer(p)
	for i := range f.Before {
		dst = pr.AppendLine(dst, f.actor(), &f.Before[i])
	}
	return pr.AppendBroken(dst, f.actor(), &f.Frame, f.Frame.Raw, f.Err)
}

// AppendText appends the rule, and its first violations with the bytes of their messages.
func (b *BrokenRule) AppendText(dst []byte, p *codec.Protocol, o TextOptions) []byte {
	who := "a client or worker"
	if b.By == codec.Server {
		who = "the server (" + p.ServerName + ")"
	}
	times := ""
	if b.Count > 1 {
		times = fmt.Sprintf(", %d times", b.Count)
	}
	dst = fmt.Appendf(dst, "rule %s (%s) violated by %s%s\n  %s\n", b.Rule.ID, b.Rule.Level, who, times, b.Rule.Text)
	for k := range b.First {
		f := &b.First[k]
		dst = fmt.Appendf(dst, "\n  at %.3f s: %s\n", f.At.Seconds(), f.Err.Detail)
		for line := range bytes.Lines(f.AppendText(nil, p, o)) {
			dst = append(append(dst, "    "...), line...)
		}
	}
	return dst
}

// WriteText writes the report as text.
func (r *Report) WriteText(w io.Writer, o TextOptions) error {
	var out []byte
	for i := range r.BrokenRules {
		out = append(r.BrokenRules[i].AppendText(out, r.Protocol, o), '\n')
	}
	out = appendBehavior(out, "", r.Behavior)
	verdict := cmp.Or(r.Untested(), violations(r.Violations(), len(r.BrokenRules)))
	out = fmt.Appendf(out, "%d connections, %d messages to the server, %d from the server in %.1f s; %s; jobwire %s\n",
		r.Connections, r.Messages[codec.Peer], r.Messages[codec.Server], r.Took.Seconds(), verdict, version.Number)
	if o := r.Outage; o != nil {
		out = fmt.Appendf(out, "the server could not be reached (connections: %d), first at %.1f s: %s\n", o.Connections,
			o.First, o.Reason)
	}
	for _, u := range r.Unfollowed {
		out = append(append(out, u.text(r.Protocol)...), '\n')
	}
	for _, p := range merged(r.Parts()) {
		out = append(p.appendTitle(append(out, '\n')), '\n')
		out = appendRules(out, "  exercised:", r.Protocol, p.Exercised)
		out = appendRules(out, "  not exercised (no message could have violated these rules):", r.Protocol, p.Missing)
	}
	_, err := w.Write(out)
	return err
}

// appendRules appends the IDs of rules without the protocol's name, wrapped into lines.
func appendRules(dst []byte, title string, p *codec.Protocol, rules []codec.RuleID) []byte {
	if len(rules) == 0 {
		return dst
	}
	const width = 79
	dst = append(dst, title...)
	col := len(title)
	for _, id := range rules {
		name := strings.TrimPrefix(string(id), p.Name+".")
		if col+1+len(name) > width {
			dst = append(dst, "\n   "...)
			col = 3
		}
		dst = append(append(dst, ' '), name...)
		col += 1 + len(name)
	}
	return append(dst, '\n')
}

// jsonFinding is a finding in a JSON report.
type jsonFinding struct {
	Connection int      `json:"connection"`
	Role       string   `json:"role"`
	Seconds    float64  `json:"seconds"`
	Type       string   `json:"type,omitempty"`
	Offset     int      `json:"offset"`
	Field      string   `json:"field,omitempty"`
	Detail     string   `json:"detail"`
	Bytes      []byte   `json:"bytes"` // at most maxJSON bytes
	Size       int      `json:"size"`
	Before     []string `json:"before"`
}

// maxJSON is the maximum number of bytes of a message in a JSON report.
const maxJSON = 4 << 10

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	type brokenRule struct {
		Rule  codec.RuleID  `json:"rule"`
		Level codec.Level   `json:"level"`
		By    string        `json:"by"`
		Count int           `json:"count"`
		Text  string        `json:"text"`
		First []jsonFinding `json:"first"`
	}
	type unchecked struct {
		By string `json:"by"`
		Unfollowed
	}
	out := struct {
		version.Head
		Protocol    string         `json:"protocol"`
		Seconds     float64        `json:"seconds"`
		Connections int            `json:"connections"`
		ToServer    int            `json:"messages_to_server"`
		FromServer  int            `json:"messages_from_server"`
		Untested    string         `json:"untested,omitempty"`
		Unchecked   []unchecked    `json:"not_checked"`
		Outage      *Outage        `json:"outage,omitempty"`
		Violations  int            `json:"violations"`
		BrokenRules []brokenRule   `json:"violated_rules"`
		Behavior    []jsonBehavior `json:"behavior"`
		Parts       []Part         `json:"rule_coverage"`
	}{version.NewHead(), r.Protocol.Name, r.Took.Seconds(), r.Connections, r.Messages[codec.Peer],
		r.Messages[codec.Server], r.Untested(), []unchecked{}, r.Outage, r.Violations(), []brokenRule{},
		behaviorJSON(r.Behavior), r.Parts()}
	for _, u := range r.Unfollowed {
		out.Unchecked = append(out.Unchecked, unchecked{u.By.String(), u})
	}
	for i := range r.BrokenRules {
		b := &r.BrokenRules[i]
		row := brokenRule{b.Rule.ID, b.Rule.Level, b.By.String(), b.Count, b.Rule.Text, nil}
		for k := range b.First {
			row.First = append(row.First, b.First[k].json(r.Protocol))
		}
		out.BrokenRules = append(out.BrokenRules, row)
	}
	return writeJSON(w, out)
}

// json returns the finding for a JSON report, with the first maxJSON bytes of the message and the messages before it as
// text.
func (f *Finding) json(p *codec.Protocol) jsonFinding {
	j := jsonFinding{Connection: f.Conn, Role: f.Role, Seconds: f.At.Seconds(), Offset: f.Err.Offset, Field: f.Err.Field,
		Detail: f.Err.Detail,
		Bytes:  slices.Clone(f.Frame.Raw[:min(len(f.Frame.Raw), maxJSON)]), Size: len(f.Frame.Raw), Before: []string{}}
	if f.Frame.Type != nil {
		j.Type = f.Frame.Type.Name
	}
	pr := (&TextOptions{}).printer(p)
	for i := range f.Before {
		j.Before = append(j.Before, strings.TrimSuffix(string(pr.AppendLine(nil, f.actor(), &f.Before[i])), "\n"))
	}
	return j
}

// writeJSON writes a value as indented JSON, without escapes for HTML.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// violations describes how many violations of how many rules there were.
func violations(n, rules int) string {
	switch {
	case n == 0:
		return "no violations"
	case n == 1:
		return "1 violation"
	case rules == 1:
		return fmt.Sprintf("%d violations of 1 rule", n)
	}
	return fmt.Sprintf("%d violations of %d rules", n, rules)
}
