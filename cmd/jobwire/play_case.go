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
	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/internal/target"
	"jobwire/play"
)

// makeCase plays a transcript through the audit proxy, and writes it as a test case. The case lists the rules that the
// audit checked in the replies of the server.
func (o *playOptions) makeCase(cmd *cobra.Command, sys *catalog.Entry, scripts []*transcript.Script, waive []codec.RuleID) error {
	if len(scripts) != 1 {
		return usage(errors.New("--case needs exactly one transcript"))
	}
	s := scripts[0]
	t, err := o.target.start(cmd.Context(), sys)
	if err != nil {
		return err
	}
	defer t.Stop()
	limits := codec.Options{Waive: waive}
	a := audit.New(audit.Options{Protocol: sys.Protocol, Codec: limits, Server: true})
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
	rules, err := provenBy(sys.Protocol, a.Report())
	if err != nil {
		return err
	}
	about := fmt.Sprintf("The messages recorded in %s.", filepath.Base(s.File))
	made := *s
	made.Meta = caseMeta(sys.Protocol, o.asCase, cmp.Or(s.Value("about"), about), rules)
	var text bytes.Buffer
	if err := transcript.Lines(&text, &made); err != nil {
		return usage(err)
	}
	if again, err := transcript.Parse(sys.Protocol, s.File, text.Bytes()); err != nil {
		return usage(err)
	} else if _, err := conform.NewCase(sys.Protocol, again[0]); err != nil {
		return usage(err)
	}
	_, err = cmd.OutOrStdout().Write(text.Bytes())
	return err
}

// caseMeta returns the keys of a case. A recorded case uses the functions and unique IDs of its recording, so @alone gives
// it a server of its own.
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

// provenBy returns the rules that the server followed in an audit, the strictest level first. Rules that vectors of the
// corpus test, which are about the format of messages, are returned only if there are no others.
func provenBy(p *codec.Protocol, r *audit.Report) ([]*codec.Rule, error) {
	for i := range r.BrokenRules {
		if b := &r.BrokenRules[i]; b.By == codec.Server {
			return nil, &exit{exitFailed, fmt.Errorf("the replies match the transcript, but the server breaks rule %s: for details, run 'jobwire audit'", b.Rule.ID)}
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
	for i := range r.Rules {
		n := &r.Rules[i]
		if n.Side != codec.Server || n.Applied() == 0 {
			continue
		}
		all = append(all, n.Rule)
		if !form[n.Rule.ID] {
			conduct = append(conduct, n.Rule)
		}
	}
	if len(conduct) == 0 {
		conduct = all
	}
	if len(conduct) == 0 {
		return nil, &exit{exitFailed, errors.New("no rule applies to a message of the server in this transcript, so a test case of it would test nothing")}
	}
	slices.SortStableFunc(conduct, func(a, b *codec.Rule) int {
		return cmp.Compare(slices.Index(codec.Levels, a.Level), slices.Index(codec.Levels, b.Level))
	})
	return conduct, nil
}
