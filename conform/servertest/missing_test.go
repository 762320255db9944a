package servertest

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/internal/target"
	"jobwire/internal/verdict"
	"jobwire/play"
	"jobwire/refserver/inject"
)

var writeDocs = flag.Bool("write-docs", false, "write docs/missing-messages.md")

// missingPage is the page that lists the results of TestMissingMessages.
const missingPage = "../../docs/missing-messages.md"

// missing is the result of a suite on a server without a message type.
type missing struct {
	protocol, typ, how string
	failed             int // cases with the type in their own steps that failed
	unfair             []string
	notPerformed       int // inconclusive or inferred
	passed             int
	cause              string // text of the first cause; "" if no case failed
	ran                bool
}

// TestMissingMessages tests reference servers that ignore a request, and servers that close the connection when they
// receive it. Only cases with the request in their own steps may fail. The others pass, with another way to their setup, or
// are inconclusive. Of the cases that do not send the request, which the reference servers pass, one in a hundred runs.
func TestMissingMessages(t *testing.T) {
	t.Parallel()
	var all []*missing
	for _, e := range catalog.All() {
		suite, err := mutanttest.Load(t, e.Protocol).About("")
		if err != nil {
			t.Fatal(err)
		}
		suite = suite.First().InProcess()
		uses := map[*conform.Case]map[*codec.Type]bool{}
		for _, c := range suite.Cases {
			uses[c] = sent(t, suite, c)
		}
		var types []*codec.Type
		for _, typ := range e.Protocol.Types {
			if typ.Sends(codec.Peer) && !typ.AnyCommand {
				types = append(types, typ)
			}
		}
		for _, typ := range types {
			for _, how := range []string{"ignores", "closes"} {
				m := &missing{protocol: e.Protocol.Title, typ: typ.Name, how: how}
				all = append(all, m)
				part := *suite
				part.Cases = nil
				for i, c := range suite.Cases {
					if uses[c][typ] || uses[c][nil] || i%100 == len(all)%100 {
						part.Cases = append(part.Cases, c)
					}
				}
				m.passed = len(suite.Cases) - len(part.Cases)
				t.Run(e.Protocol.Name+"/"+how+"/"+typ.Name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { m.run(t, e, &part, typ) })
					t.Logf("%d cases failed, %d were not performed, %d passed", m.failed, m.notPerformed, m.passed)
					for _, id := range m.unfair {
						t.Errorf("%s", id)
					}
				})
			}
		}
	}
	t.Cleanup(func() { // after the subtests
		if whole := !slices.ContainsFunc(all, func(m *missing) bool { return !m.ran }); whole {
			checkPage(t, all)
			checkCauses(t, all)
		}
	})
}

// checkCauses checks that the first cause names the missing message for 95 % of the servers. It may name only its effect
// if the server ignores a message that has no reply.
func checkCauses(t *testing.T, all []*missing) {
	t.Helper()
	failed := slices.DeleteFunc(slices.Clone(all), func(m *missing) bool { return m.cause == "" })
	var others []string
	for _, m := range failed {
		if !strings.Contains(m.cause, m.typ) {
			others = append(others, fmt.Sprintf("%s: the server %s %s: %s", m.protocol, m.how, m.typ, m.cause))
		}
	}
	t.Logf("the first cause names the message for %d of %d servers", len(failed)-len(others), len(failed))
	if 20*len(others) > len(failed) {
		t.Errorf("the first cause does not name the message for %d of %d servers:\n%s",
			len(others), len(failed), strings.Join(others, "\n"))
	}
}

// run runs the suite against a reference server that lacks the message type.
func (m *missing) run(t *testing.T, e *catalog.Entry, suite *conform.Suite, typ *codec.Type) {
	action := "drop"
	if m.how == "closes" {
		action = "close"
	}
	faulty := inject.Protocol{Protocol: e.Protocol, New: e.New, Waive: e.Lenient}
	start := func(ctx context.Context) (target.Target, error) {
		return target.InMemory(ctx, "faulty", func(ctx context.Context, ln net.Listener) error {
			return faulty.Serve(ctx, ln, &inject.MutantSpec{Fault: action + " from-peer " + typ.Name})
		})
	}
	r := &conform.Runner{Start: start, Strict: true, Segments: []play.Segmentation{play.Plain}, InferAfter: 3}
	m.ran = true
	report := conform.Report{Protocol: e.Protocol, Results: runInBubble(t, r, suite)}
	if causes := report.Causes(); len(causes) > 0 {
		m.cause = causes[0].Text
	}
	for _, res := range report.Results {
		switch {
		case res.Verdict == verdict.Inconclusive || res.Verdict == verdict.Inferred:
			m.notPerformed++
		case !res.Verdict.FailsRun():
			m.passed++
		case names(res.Case, typ):
			m.failed++
		default:
			m.unfair = append(m.unfair, fmt.Sprintf("%s: %s: %s", res.Case.ID, res.Verdict, res.Note))
		}
	}
}

// sent returns the types of the messages that peers send in a case and in the tests of its setups. The type nil stands
// for any type.
func sent(t *testing.T, suite *conform.Suite, c *conform.Case) map[*codec.Type]bool {
	t.Helper()
	steps := c.Script.Steps
	for _, name := range c.Script.Setups {
		probe, err := suite.Setups.Probe(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		steps = slices.Concat(steps, probe.Steps)
	}
	types := map[*codec.Type]bool{}
	for _, st := range steps {
		typ := st.Choices[0].Type
		if typ != nil && typ.AnyCommand {
			typ = nil
		}
		if st.From == codec.Peer && (typ != nil || st.Choices[0].Verb != transcript.Opens && st.Choices[0].Verb != transcript.Closes) {
			types[typ] = true
		}
	}
	return types
}

// names reports whether a step of the case itself has the type, or raw bytes with the type's word or with a message of the
// type.
func names(c *conform.Case, typ *codec.Type) bool {
	bare := map[transcript.Actor][]byte{}
	for i := range c.Script.Steps {
		st := &c.Script.Steps[i]
		if st.Setup != "" || st.From != codec.Peer {
			continue
		}
		if st.Choices[0].Type == typ || slices.Contains(st.Ignored, typ) {
			return true
		}
		if b := st.Choices[0].Bytes; st.Choices[0].Verb == transcript.Raw {
			if typ.Word != "" && strings.Contains(string(b), typ.Word) {
				return true
			}
			bare[st.Peer] = append(bare[st.Peer], b...)
		}
	}
	for _, b := range bare {
		if contains(c.Script.Protocol, b, typ) {
			return true
		}
	}
	return false
}

// contains reports whether one of the messages at the beginning of b has the type.
func contains(p *codec.Protocol, b []byte, typ *codec.Type) bool {
	stream := codec.Stream{Session: p.NewSession(codec.Options{}), From: codec.Peer}
	for len(b) > 0 {
		var f codec.Frame
		n, found, _ := stream.Read(b, &f)
		if f.Type == typ {
			return true
		}
		if found == codec.Nothing || n <= 0 || n > len(b) {
			return false
		}
		b = b[n:]
	}
	return false
}

// checkPage compares the page with the results or, if -write-docs is set, writes it.
func checkPage(t *testing.T, all []*missing) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Servers without a message type\n\n" +
		"A server that does not implement one message type is still tested on everything else. The tables show what `jobwire conform` reports\n" +
		"about reference servers that ignore all requests of one type, and about reference servers that close the connection when they receive\n" +
		"such a request. The column failed has the number of cases that fail; each of these cases sends the request in its own steps. The\n" +
		"column not performed has the number of cases that need the reply to the request, after three such cases have failed, and of cases\n" +
		"that need the request because nothing else can bring the server to the state in which they begin. The column passed has the number\n" +
		"of cases that pass. Of a case with parameters, only the first instance is counted.\n\n" +
		"`go test ./conform/servertest -run TestMissingMessages -args -write-docs` writes this page.\n")
	protocol := ""
	for _, m := range all {
		if m.protocol != protocol {
			protocol = m.protocol
			fmt.Fprintf(&b, "\n## %s\n\n| request | the server | failed | not performed | passed |\n| --- | --- | --- | --- | --- |\n", protocol)
		}
		how := "ignores it"
		if m.how == "closes" {
			how = "closes the connection"
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d |\n", m.typ, how, m.failed+len(m.unfair), m.notPerformed, m.passed)
	}
	if *writeDocs {
		if err := os.WriteFile(missingPage, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if page, err := os.ReadFile(missingPage); err != nil || string(page) != b.String() {
		t.Errorf("%s differs from the results (%v): write it with -args -write-docs", missingPage, err)
	}
}
