package export

import (
	"slices"
	"strconv"
	"strings"

	"jobwire/codec"
)

// contract is the table that the Lua code reads. Lists, and with them sides, are numbered from 1 in Lua.
type contract struct {
	Name, Title, Server string
	Port                int
	Shown               []shown // the fields that can be filtered
	Rules               map[string]string
	Types               []messageType
	Header              *codec.Header
	Lines               *codec.Lines
	Values              *codec.Values
	MaxData             int
	Pairing, Dependent  []codec.RuleID
}

// shown declares one field of the dissector.
type shown struct {
	Key, Filter, Label string
	Kind               string // string, bytes, uint64 or int64
}

type messageType struct {
	Name, Word, Sep, End, Stop string
	Code                       int
	Coded                      bool
	Sends                      [2]bool
	Form                       [2]*codec.Form
	Fields, Repeat             []field
	Words                      []word
	Answers                    []int
	Does                       string
	Waits, Ordered, Push, Any  bool
	Free                       *codec.FreeText
}

type field struct {
	Name, Kind, Key          string
	Width, Max               int
	Lo, Hi                   string
	Lead, Term               string
	Limits                   bool
	Bad, NotFirst            string
	Values                   []string
	Canonical                bool
	Optional, Scalar, Unique bool
	Rule, MaxRule, NonEmpty  codec.RuleID
}

type word struct {
	Kind   string
	Fold   bool
	Group  bool
	Parts  []part
	Tail   string
	Opaque bool // the second argument may contain any bytes
}

type part struct {
	Lead  string
	Field field
	Same  int // from 1
}

var kinds = [...]string{codec.Opaque: "opaque", codec.Text: "text", codec.Number: "number", codec.Signed: "signed",
	codec.Uint:    "uint",
	codec.Literal: "literal", codec.Code: "code", codec.Length: "length"}

// MaxData is the number of bytes in one message's data, or in the body of a Beanstalk job, that the dissector accepts.
// It is the limit of "jobwire decode", because a server may be configured with a higher limit than the default of the
// specification.
const MaxData = 17 << 20

// describe converts the definition of a protocol to the tables that the dissector contains. name is the name of the
// dissector in Wireshark.
func describe(p *codec.Protocol, name string) *contract {
	c := &contract{Name: name, Title: p.Title, Server: p.ServerName, Port: p.DefaultPort, Rules: map[string]string{},
		Header: p.Framing.Header, Lines: p.Framing.Lines, Values: p.Framing.Values, MaxData: MaxData, Pairing: p.Pairing,
		Dependent: p.Dependent}
	for _, r := range p.Rules {
		c.Rules[string(r.ID)] = r.Text
	}
	keys := c.show(p)
	for _, t := range p.Types {
		c.Types = append(c.Types, describeType(p, t, keys))
	}
	return c
}

// describeType converts the definition of a message type. keys are the names of the dissector's fields by kind and
// field name.
func describeType(p *codec.Protocol, t *codec.Type, keys map[codec.Kind]map[string]string) messageType {
	m := messageType{Name: t.Name, Word: t.Word, Sep: t.Sep, End: t.End, Stop: t.Stop,
		Code: int(t.Code), Coded: p.Framing.Header != nil && t.Word == "" && t.End == "",
		Sends: [2]bool{t.Sends(codec.Peer), t.Sends(codec.Server)}, Form: t.Form, Does: effect(t.Does),
		Waits: t.Does == codec.Wait, Ordered: t.Ordered, Push: t.Push, Any: t.AnyCommand, Free: free(t.Free)}
	for i := range t.Fields {
		m.Fields = append(m.Fields, describeField(&t.Fields[i], keys))
	}
	for i := range t.Repeat {
		m.Repeat = append(m.Repeat, describeField(&t.Repeat[i], keys))
	}
	for _, w := range t.Words {
		lw := word{Kind: string(rune(w.Kind)), Fold: w.Fold, Group: w.Repeat, Tail: w.Tail}
		for i, pt := range w.Parts {
			lp := part{Lead: pt.Prefix, Field: describeField(pt.Field, keys)}
			if pt.Again {
				lp.Same = pt.Same + 1
			}
			lw.Parts = append(lw.Parts, lp)
			lw.Opaque = i == 1 && pt.Field.Kind == codec.Opaque
		}
		m.Words = append(m.Words, lw)
	}
	for _, a := range t.Answers {
		m.Answers = append(m.Answers, a.Index+1)
	}
	return m
}

// free returns the expressions in the syntax of PCRE, in which \s matches one more character than in Go.
func free(f *codec.FreeText) *codec.FreeText {
	if f == nil {
		return nil
	}
	r := strings.NewReplacer(`\s`, `[\t\n\f\r ]`, `\S`, `[^\t\n\f\r ]`)
	return &codec.FreeText{Unlike: r.Replace(f.Unlike), Like: r.Replace(f.Like)}
}

// effect names those effects that decide which request a reply answers.
func effect(e codec.Effect) string {
	return map[codec.Effect]string{codec.Refuse: "refuse", codec.Assign: "assign", codec.Ask: "ask", codec.Sleep: "sleep",
		codec.Wake: "wake"}[e]
}

// describeField converts the definition of a field. Numbers are decimal strings, because a number in Lua may not
// represent all 64 bits.
func describeField(f *codec.Field, keys map[codec.Kind]map[string]string) field {
	d := field{Name: f.Name, Kind: kinds[f.Kind], Width: f.Width, Max: f.Max, Lead: f.Prefix, Term: f.Term,
		NotFirst: f.NotFirst, Values: f.Values,
		Canonical: f.Canonical, Optional: f.Optional, Scalar: f.Scalar, Unique: f.Unique, Rule: f.Rule, MaxRule: f.MaxRule,
		NonEmpty: f.NonEmpty}
	if !f.Derived() {
		d.Key = keys[f.Kind][f.Name]
	}
	if f.Lo > 0 {
		d.Lo = strconv.FormatUint(f.Lo, 10)
	}
	if f.Hi > 0 {
		d.Hi = strconv.FormatUint(f.Hi, 10)
	}
	if f.Chars != "" {
		d.Bad = "[^" + escapePattern(f.Chars) + "]"
	}
	return d
}

// escapePattern returns bytes as they are written in a set of a Lua pattern.
func escapePattern(chars string) string {
	var b strings.Builder
	for i := range len(chars) {
		if c := chars[i]; c > ' ' && c < 0x7f && !('0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z') {
			b.WriteByte('%')
		}
		b.WriteByte(chars[i])
	}
	return b.String()
}

// show collects the names of all arguments and declares the fields of the dissector. It returns the key of each field
// by the kind and name of the argument. Payloads are bytes; other text is a string. If arguments with the same name are
// numbers and text, the filter of the text ends in _text.
func (c *contract) show(p *codec.Protocol) map[codec.Kind]map[string]string {
	used, payload := map[string]map[codec.Kind]bool{}, map[string]bool{}
	var names []string
	for _, t := range p.Types {
		for _, f := range slices.Concat(t.Fields, t.Repeat) {
			if f.Derived() {
				continue
			}
			if used[f.Name] == nil {
				used[f.Name] = map[codec.Kind]bool{}
				names = append(names, f.Name)
			}
			used[f.Name][f.Kind] = true
			payload[f.Name] = payload[f.Name] || f.Means == codec.Payload
		}
	}
	keys := map[codec.Kind]map[string]string{}
	for k := range codec.Literal {
		keys[k] = map[string]string{}
	}
	for _, name := range names {
		u, slug := used[name], normalize(name)
		add := func(key, kind string, of ...codec.Kind) {
			if reserved[key] {
				key += "_value"
			}
			for _, k := range of {
				keys[k][name] = key
			}
			c.Shown = append(c.Shown, shown{key, c.Name + "." + key, name, kind})
		}
		numbers := u[codec.Number] || u[codec.Signed] || u[codec.Uint]
		if numbers {
			kind := "uint64"
			if u[codec.Signed] {
				kind = "int64"
			}
			add(slug, kind, codec.Number, codec.Signed, codec.Uint)
		}
		if u[codec.Text] || u[codec.Opaque] {
			kind := "string"
			if payload[name] {
				kind = "bytes"
			}
			if numbers {
				slug += "_text"
			}
			add(slug, kind, codec.Text, codec.Opaque)
		}
	}
	return keys
}

// reserved are the names of the fields that every message has; see dissector.lua.
var reserved = map[string]bool{"type": true, "type_number": true, "to": true, "rule": true, "response_to": true,
	"response_in": true,
	"time":        true, "violation": true}

// normalize returns a name in small letters, with an underscore for all other characters.
func normalize(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(name))
}
