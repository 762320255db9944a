package model

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/conform"
	"jobwire/internal/peers"
	"jobwire/internal/target"
)

var (
	execFlag   = flag.String("exec", "", "hold -protocol's model against this program, started anew for each conversation")
	addrFlag   = flag.String("addr", "", "hold -protocol's model against the server there, which must be empty: -cases 1 but for Gearman")
	quirksFlag = flag.String("quirks", "", "a server's quirks, or the name of a profile, such as gearmand")
	waiveFlag  = flag.String("waive", "", "rules that the server is known to break in its messages")
	minFlag    = flag.Duration("for", 0, "how long, instead of -cases")
)

// real are servers of other projects: the program, which is the name of its profile too, and how to start it.
var real = []struct {
	peer, protocol string
	args           []string
	waive          []codec.RuleID
}{
	{"gearmand", "gearman", []string{"-L", "127.0.0.1", "-p", "{port}", "-t", "1", "-l", "none"}, []codec.RuleID{"gearman.args.trailing-nul"}},
	{"gearmand-perl", "gearman", []string{"--listen=127.0.0.1", "--port={port}"}, []codec.RuleID{"gearman.number.decimal"}},
	{"beanstalkd", "beanstalk", []string{"-l", "127.0.0.1", "-p", "{port}"}, nil},
	{"redis-server", "gearmonkey", []string{"--port", "{port}", "--save", "", "--appendonly", "no"}, nil},
}

// quirksOf returns quirks, each by its name or by that of a profile that lists it.
func quirksOf(t *testing.T, p *codec.Protocol, names ...string) (quirks []Quirk) {
	suite, err := conform.Load(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		quirks = append(quirks, Quirk(name))
		if slices.Contains(conform.Profiles(p), name) {
			profile, err := conform.LoadProfile(name, suite)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range profile.Fuzz.Quirks {
				quirks = append(quirks, Quirk(q))
			}
		}
	}
	return quirks
}

// hold performs conversations with servers that start makes; they are made smaller when
// one fails.
func hold(t *testing.T, p *codec.Protocol, start func() (target.Target, error), quirks []Quirk, waive []codec.RuleID, cases int) {
	l := &law{d: DictionOf(p, waive...)}
	l.d.wait = 0
	l.begin = over(p, l.d, start, quirks...)
	seed, begin, done := max(*seedFlag, 1), time.Now(), 0
	for {
		n := min(cases, 100)
		passed, failure := l.check(n, seed)
		done += passed
		if failure != nil {
			l.report(t, seed, n, " -exec ... -quirks ...", failure)
			break
		}
		if cases -= n; cases <= 0 && time.Since(begin) >= *minFlag {
			break
		}
		cases = max(cases, 1)
		if *minFlag > 0 {
			cases = 100
		}
		seed++
	}
	t.Logf("%d conversations in %v", done, time.Since(begin).Round(time.Millisecond))
}

// The models hold for real servers, but for what is known of them.
func TestRealServers(t *testing.T) {
	cases := *casesFlag
	if cases == 0 {
		cases = 20
	}
	if *execFlag != "" || *addrFlag != "" {
		var waive []codec.RuleID
		for _, r := range strings.Fields(*waiveFlag) {
			waive = append(waive, codec.RuleID(r))
		}
		start := func() (target.Target, error) { return target.Exec(t.Context(), *execFlag) }
		if *addrFlag != "" {
			start = func() (target.Target, error) { return target.Address(*addrFlag) }
		}
		for _, tt := range protocols {
			if tt.p.Name == *protocolFlag {
				hold(t, tt.p, start, quirksOf(t, tt.p, strings.Fields(*quirksFlag)...), waive, cases)
				return
			}
		}
		t.Fatal("-protocol is missing")
	}
	for _, r := range real {
		if *protocolFlag != "" && *protocolFlag != r.protocol {
			continue
		}
		t.Run(r.peer, func(t *testing.T) {
			program := peers.Need(t, r.peer)
			i := slices.IndexFunc(protocols, func(tt protocolRow) bool { return tt.p.Name == r.protocol })
			hold(t, protocols[i].p, func() (target.Target, error) {
				return target.Command{Args: append([]string{program}, r.args...)}.Start(t.Context())
			}, quirksOf(t, protocols[i].p, r.peer), r.waive, cases)
		})
	}
}
