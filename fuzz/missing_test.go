package fuzz

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/codec"
	"jobwire/conform"
	"jobwire/fuzz/faults"
	"jobwire/fuzz/gen"
	"jobwire/fuzz/input"
	"jobwire/fuzz/internal/fuzztest"
	"jobwire/fuzz/triage"
	"jobwire/internal/target"
)

// TestMissingMessages fuzzes reference servers that ignore one message type, answer it with a message of another kind, or
// refuse it. There is a finding about the message, and none is critical: such a server does not hang, and it discloses
// nothing. The short form tests one server in forty.
func TestMissingMessages(t *testing.T) {
	t.Parallel()
	n := 0
	for _, p := range codec.Protocols() {
		suite := suiteOf(t, p)
		for _, typ := range p.Types {
			if !typ.Sends(codec.Peer) || typ.AnyCommand || typ.Does == codec.Shutdown {
				continue // no type, or one that the fuzzer never sends
			}
			all := withoutType(p, typ)
			for _, how := range slices.Sorted(maps.Keys(all)) {
				if n++; testing.Short() && n%40 != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", p.Name, how, typ.Name), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { fuzzWithout(t, suite, typ, all[how], mayLack(typ, how)) })
				})
			}
		}
	}
}

// withoutType returns the faults of servers without a message type, by what they do.
func withoutType(p *codec.Protocol, typ *codec.Type) map[string]string {
	r := gen.New(uint64(slices.Index(p.Types, typ)))
	answer := func(suits func(*codec.Type) bool) string {
		var types []*codec.Type
		for _, reply := range p.Types {
			if reply.Res&typ.Req != 0 && suits(reply) {
				types = append(types, reply)
			}
		}
		for range 100 * len(types) {
			m := gen.Of(r, types[r.IntN(len(types))], gen.Options{Safe: true})
			if !suits(readAs(p, gen.Of(r, typ, gen.Options{Safe: true}), m)) {
				continue // in reply to the request, these bytes are a message of another type
			}
			action := "answer from-peer " + typ.Name + " " + m.Type.Name
			for _, a := range m.Args {
				action += " " + strings.NewReplacer("{", "[", "}", "]").Replace(strconv.Quote(string(a)))
			}
			return action
		}
		return ""
	}
	refuses := func(reply *codec.Type) bool {
		return reply.Does == codec.Refuse && (len(typ.Answers) == 0 || slices.Contains(typ.Answers, reply))
	}
	isWrong := func(reply *codec.Type) bool {
		return reply.Does != codec.Refuse && !slices.Contains(typ.Answers, reply)
	}
	all := map[string]string{"ignored": "drop from-peer " + typ.Name, "refused": answer(refuses), "wrong": answer(isWrong)}
	maps.DeleteFunc(all, func(_, action string) bool { return action == "" })
	return all
}

// readAs returns the message type as which a client reads a reply to a request. If the reply is illegal, it is the type
// of the reply.
func readAs(p *codec.Protocol, request, reply codec.Message) *codec.Type {
	sess, nonStrict := p.NewSession(codec.Options{}), p.NewSession(codec.Options{WaiveAll: true})
	var f codec.Frame
	if b, err := sess.Append(nil, codec.Peer, &request); err == nil {
		sess.Decode(codec.Peer, b, &f)
	}
	b, err := nonStrict.Append(nil, codec.Server, &reply)
	if err != nil {
		return reply.Type
	}
	if _, err := sess.Decode(codec.Server, b, &f); err != nil || f.Type == nil {
		return reply.Type
	}
	return f.Type
}

// mayLack reports whether a server that ignores or refuses a message type may be correct: nothing depends on the
// type, or it is refused and is beyond the specification or has a schedule, which no server need accept.
func mayLack(typ *codec.Type, how string) bool {
	optional := strings.HasPrefix(typ.Section, "beyond the specification") || typ.Has(codec.Schedule)
	return how == "refused" && optional || how == "ignored" && typ.Does == codec.NoEffect && len(typ.Answers) == 0
}

// seedsWith returns inputs with the messages of cases that test a server and in which a peer sends the message type.
func seedsWith(suite *conform.Suite, typ *codec.Type) (all []*input.Input) {
	for _, c := range suite.First().Cases {
		if c.Program != "" || len(c.Watch) > 0 || c.Descriptors > 0 {
			continue
		}
		if in := input.FromScript(c.Script); in != nil && slices.ContainsFunc(in.Steps, func(s input.Step) bool { return s.Type == typ }) {
			all = append(all, in)
		}
	}
	return all[:min(20, len(all))]
}

// fuzzWithout fuzzes a server with a fault in the handling of a message type. If correct is set, a server with the fault
// may be correct.
func fuzzWithout(t *testing.T, suite *conform.Suite, typ *codec.Type, script string, correct bool) {
	t.Log(script)
	p := suite.Protocol
	cfg := Config{Protocol: p, Seeds: seedsWith(suite, typ), Seed: 1, Sequential: true, Timeout: time.Second, Server: triage.Server{Start: fuzztest.Serve(faults.Fault{Name: "missing", Protocol: p.Name, Script: script}), Reference: fuzztest.Serve(faults.Faultless(p.Name))}}
	cfg.Count = int64(len(cfg.Seeds)) + 150
	found := false
	cfg.Found = func(fd *triage.Finding) {
		found = found || slices.ContainsFunc(fd.Input.Steps, func(s input.Step) bool { return input.Class(p, &s) == typ.Name })
		if fd.Severity(p).Level() == "critical" {
			t.Errorf("%s: %s\n%s", fd.Severity(p), fd.Fault, fd.Text)
		}
	}
	stats, err := Run(t.Context(), cfg)
	isOnlyProbe := !slices.ContainsFunc(p.Barriers, func(b codec.Barrier) bool { return b.Request[0] != typ.Name })
	switch {
	case isOnlyProbe && errors.Is(err, target.ErrUnreachable):
	case err != nil:
		t.Fatal(err)
	case !found && !correct:
		t.Errorf("no finding about %s: %+v", typ.Name, stats)
	}
}
