package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/play"
)

// makeCase performs a transcript through an audit, and writes it as a case that names the rules
// which the server had occasion to break.
func (o *playOptions) makeCase(cmd *cobra.Command, sys *system, scripts []*transcript.Script, waive []codec.RuleID) error {
	if len(scripts) != 1 {
		return usage(errors.New("--case is for one transcript"))
	}
	s := scripts[0]
	t, err := o.target.start(cmd.Context(), sys)
	if err != nil {
		return err
	}
	defer t.Stop()
	limits := codec.Options{Waive: waive}
	a := audit.New(audit.Options{Protocol: sys.protocol, Codec: limits, Server: true})
	proxy := &audit.Proxy{Auditor: a, Dial: func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, t) }}
	front, err := target.Func(cmd.Context(), t.String(), proxy.Serve)
	if err != nil {
		return err
	}
	defer front.Stop()
	dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) { return target.Dial(ctx, front) }
	r := play.Peers(cmd.Context(), s, dial, play.Options{Timeout: o.timeout, Exact: o.exact, Codec: limits})
	if r.Failure != nil {
		return &exit{o.report(cmd, s, r, play.ReportOptions{Full: o.full}, false), nil}
	}
	rules, err := provenBy(sys.protocol, a.Report())
	if err != nil {
		return err
	}
	about := fmt.Sprintf("What %s has recorded.", filepath.Base(s.File))
	made := *s
	made.Meta = caseMeta(sys.protocol, o.asCase, cmp.Or(s.Value("about"), about), rules)
	var text bytes.Buffer
	if err := transcript.Lines(&text, &made); err != nil {
		return usage(err)
	}
	if again, err := transcript.Parse(sys.protocol, s.File, text.Bytes()); err != nil {
		return usage(err)
	} else if _, err := conform.NewCase(sys.protocol, again[0]); err != nil {
		return usage(err)
	}
	_, err = cmd.OutOrStdout().Write(text.Bytes())
	return err
}

// caseMeta describes a case. A recorded one uses the functions and unique IDs that it was
// recorded with, so it needs a server of its own.
func caseMeta(p *codec.Protocol, name, about string, rules []*codec.Rule) []transcript.Meta {
	ids := make([]string, len(rules))
	for i, r := range rules {
		ids[i] = string(r.ID)
	}
	return []transcript.Meta{
		{Key: "protocol", Value: p.Name}, {Key: "case", Value: name}, {Key: "about", Value: about},
		{Key: "section", Value: rules[0].Section}, {Key: "rules", Value: strings.Join(ids, " ")}, {Key: "alone"},
	}
}

// provenBy returns the rules that an audit saw the server keep, the strictest first. Those of the
// form of messages, which vectors stand for, are named only if there is nothing else.
func provenBy(p *codec.Protocol, r *audit.Report) ([]*codec.Rule, error) {
	for i := range r.Breaches {
		if b := &r.Breaches[i]; b.By == codec.Server {
			return nil, &exit{exitFellShort, fmt.Errorf("it plays, but the server breaks %s: jobwire audit tells how", b.Rule.ID)}
		}
	}
	vectors, err := readVectors(p)
	if err != nil {
		return nil, err
	}
	form := map[codec.RuleID]bool{}
	for _, v := range vectors {
		form[codec.RuleID(v.script.Value("rule"))] = true
	}
	var conduct, all []*codec.Rule
	for _, st := range r.Exercise {
		if st.Bound != codec.Server || st.Times == 0 {
			continue
		}
		all = append(all, st.Rule)
		if !form[st.Rule.ID] {
			conduct = append(conduct, st.Rule)
		}
	}
	if len(conduct) == 0 {
		conduct = all
	}
	if len(conduct) == 0 {
		return nil, &exit{exitFellShort, errors.New("the server says nothing in it that a rule is about")}
	}
	levels := []codec.Level{codec.Must, codec.Should, codec.May, codec.DeFacto, codec.Extension}
	slices.SortStableFunc(conduct, func(a, b *codec.Rule) int {
		return cmp.Compare(slices.Index(levels, a.Level), slices.Index(levels, b.Level))
	})
	return conduct, nil
}
