package input

import (
	"slices"
	"strconv"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
)

// templates are sequences of related messages that random generation rarely produces. They apply to all protocols.
//
// The slots of a template are separated by semicolons. A slot has the number of a connection and the effects of a
// message, one of which is chosen. A property after a period restricts the messages to those with that field. "report"
// means any report of a worker. "leaves" and "waits" are actions of the peer. "=" means that the reply names a job, to
// which later messages refer. A slot with "?" is optional. If the protocol has no message for a slot, the slot is
// omitted, or the whole template if the slot has "!". "*" means a random connection, and "any" any message or
// disconnect: these templates bring a job into each of its states and then try every message.
var templates = []string{
	"0 =submit; 1 register; 1 =ask; 0 leaves?; 1 report|delete; 0 query.job|wait?; 1 report?; 1 leaves?",
	"0 =submit; 2 =submit; 0 leaves?; 1 register; 1 =ask; 2 leaves?; 1 !report; 3 query.job?",
	"1 register; 1 !sleep; 1 unregister|register|sleep|leaves?; 0 =submit; 2 =submit?; 1 =ask?; 0 leaves?; 1 report?",
	"0 =submit; 1 register.limit; 1 =ask; 1 waits; 1 report|delete|touch; 1 leaves?; 0 query.job?",
	"0 =submit?; 2 !configure.queue; 0 =submit; 0 =submit?; 2 query|cancel|configure.queue",
	"1 configure?; 1 register; 2 query?; 1 unregister|configure|register; 2 query",
	"0 !configure.option; 0 =submit; 1 register; 1 =ask; 1 exception|warning|data|status; 1 report",
	"0 use?; 0 =submit; 0 =submit?; 1 register?; 1 unregister?; 1 =ask; 1 !release|delete|bury|touch|kick|query.job; 1 leaves?; 2 query?; 1 =ask?",
	"0 =submit; 1 =ask; 1 !bury|release; 2 kick|query|delete; 1 =ask; 2 query?",
	"1 register; 1 register|unregister; 1 unregister?; 0 use?; 0 =submit; 1 =ask; 2 query?",
	"0 use?; 0 =submit; 0 !pause; 1 register?; 1 =ask; 1 waits?; 2 query|kick",
	"1 =ask|wait; 1 leaves?; 0 =submit|store; 2 =ask|query; 2 report|delete|touch|release|bury; 0 leave?",
	"0 =submit; 1 register; 2 register; 1 =ask; 1 leaves|leave; 2 =ask; 2 report|delete; 0 wait|query.job",
	"0 configure.queue?; 0 !store; 0 store; 0 =submit; 1 =ask; 1 query.job; 1 report|store; 1 store?; 2 query.job",
	"0 =submit; 0 =submit?; 1 =ask; 2 query.queue; 1 !store; 0 wait; 0 delete?; 2 query.queue",
	"2 configure.queue; 0 !notify; 2 configure.queue?; 1 notify?",
	"0 =submit; 2 =submit; 3 =submit?; 0 leaves|!report; 1 register; 1 =ask; 3 query.job?; 1 report; 1 report?",
	"0 =submit; 0 leaves?; 2 cancel?; 2 =submit; 1 register; 1 =ask; 1 report; 2 query?",
	"0 =submit; 1 register; 1 =ask; 0 leaves?; 1 leaves|report|delete; 2 =submit; 3 register; 3 =ask; 3 report?",
	"1 ask; 1 any; 0 =submit; 1 any?",
	"1 register; 2 register; 0 =submit; 0 =submit; 0 =submit?; 1 =ask; 1 =ask; 2 =ask|sleep; 1 leaves|leave; 2 =ask?; 2 =ask; 2 report|delete?; 2 =ask?",

	"0 use?; 0 =submit; * any; 2 query.job?; 1 register; 1 =ask; 1 report|delete?",
	"0 =submit; 1 register; 1 =ask; * any; * any?; 2 query.job?; 1 report|delete",
	"0 =submit; 1 register; 1 =ask; 1 report|delete; * any; 2 query.job?; 1 report|delete?",
	"0 =submit; 1 register; 1 =ask; 0 leaves; * any; 1 report|delete?",
	"0 =submit; 1 register; 1 =ask; 1 leaves; * any; 2 register; 2 =ask",
	"0 =submit; 1 register.limit; 1 =ask; 1 waits; * any; 2 query.job?; 1 report|delete?",
	"0 =submit; 1 =ask; 1 !bury|release; * any; 2 query.job?; 1 =ask",
	"0 =submit; 1 register; 1 =ask?; 2 !cancel; * any; 2 query.job?; 0 =submit; 1 =ask",
	"1 register; 1 !sleep; * any; 0 =submit; * any; 1 =ask",

	"0 =submit; 2 =submit; 3 =submit; 4 =submit?; 0 leaves?; 1 register; 1 =ask; 2 leaves?; 5 =submit?; 1 report; 3 query.job?; 1 report?",
	"0 =submit; 2 =submit; 1 register; 1 =ask; 3 =submit; 0 leaves|cancel; 4 =submit; 1 report|leaves; 2 query.job|wait?; 5 register?; 5 =ask?",
}

// drains are templates that request the jobs of one queue.
var drains = []string{
	"0 register; 0 !ask; 0 ask?",
	"0 register; 0 !sleep",
	"0 !use; 0 query",
	"0 !query.queue; 0 query.queue?; 0 query.queue?",
}

var workerReports = []codec.Effect{codec.Data, codec.Warning, codec.Status, codec.Complete, codec.Fail, codec.Exception}

var meanings = map[string]codec.Meaning{"job": codec.JobID, "queue": codec.Queue, "option": codec.OptionName,
	"limit": codec.TimeLimit, "start": codec.StartTime, "delay": codec.Delay, "timeout": codec.Timeout}

// slot is one message or action of a template.
type slot struct {
	conn     int               // number of the connection, or anyConn
	types    []*codec.Type     // the message types to choose from
	verbs    []transcript.Verb // the actions to choose from
	gives    bool              // the reply names a job
	optional bool
}

// anyConn means one of the connections 0, 1 and 2, chosen at random.
const anyConn = -1

// Leaves are the actions with which a peer ends its connection.
var Leaves = []transcript.Verb{transcript.Closes, transcript.HalfCloses, transcript.Resets}

// readTemplates parses templates and returns those for which the protocol has messages. It does not use message types
// for which keep returns false.
func readTemplates(p *codec.Protocol, texts []string, keep func(*codec.Type) bool) (all [][]slot) {
	for _, text := range texts {
		if slots := readTemplate(p, text, keep); slots != nil {
			all = append(all, slots)
		}
	}
	return all
}

// readTemplate parses one template, whose notation is described at templates. It returns nil if the protocol has no
// message for a slot with "!", or nothing for any slot.
func readTemplate(p *codec.Protocol, text string, keep func(*codec.Type) bool) (slots []slot) {
	for part := range strings.SplitSeq(text, "; ") {
		conn, what, _ := strings.Cut(part, " ")
		var s slot
		if s.conn = anyConn; conn != "*" {
			s.conn, _ = strconv.Atoi(conn)
		}
		what, needed := strings.CutPrefix(what, "!")
		what, s.gives = strings.CutPrefix(what, "=")
		what, s.optional = strings.CutSuffix(what, "?")
		for i, word := range strings.Split(what, "|") {
			switch word {
			case "any":
				for _, t := range p.Types {
					if t.Req != 0 && keep(t) {
						s.types = append(s.types, t)
					}
				}
				s.verbs = append(s.verbs, Leaves...)
				continue
			case "leaves":
				s.verbs = append(s.verbs, Leaves...)
			case "waits":
				s.verbs = append(s.verbs, transcript.Nothing)
			}
			word, names, _ := strings.Cut(word, ".")
			for _, t := range p.Types {
				does := t.Does.String() == word || word == "report" && slices.Contains(workerReports, t.Does)
				if does && t.Req != 0 && (names == "" || t.Has(meanings[names])) && keep(t) {
					s.types = append(s.types, t)
				}
			}
			if i == 0 && needed && len(s.types) == 0 {
				return nil
			}
		}
		if len(s.types)+len(s.verbs) > 0 {
			slots = append(slots, s)
		}
	}
	return slots
}

// fill adds the steps of a template to an input. Most steps use the same names and keys.
func (g *Generator) fill(in *Input, slots []slot) {
	same := map[string][]byte{}
	var givers []int
	tame := g.r.IntN(3) > 0
	for _, sl := range slots {
		if sl.optional && g.r.IntN(2) == 0 {
			continue
		}
		s := Step{ID: in.nextID(), Conn: sl.conn}
		if sl.conn == anyConn {
			s.Conn = g.r.IntN(3)
		}
		n := g.r.IntN(len(sl.types) + len(sl.verbs))
		if n >= len(sl.types) {
			if s.Verb = sl.verbs[n-len(sl.types)]; s.Verb == transcript.Nothing {
				s.For = g.pause(in)
			}
			in.Steps = append(in.Steps, s)
			continue
		}
		s.Verb, s.Type = transcript.Send, sl.types[n]
		m := gen.Of(g.r, s.Type, gen.Options{Safe: tame})
		s.CRLF = m.CRLF
		for i, v := range m.Args {
			f := s.Type.FieldAt(i)
			a := g.arg(f, v)
			switch {
			case f.Assigned && len(givers) > 0 && g.r.IntN(12) > 0:
				a.Of = givers[len(givers)-1]
				if g.r.IntN(4) == 0 {
					a.Of = givers[g.r.IntN(len(givers))]
				}
			case isName(f) || isKey(f):
				if known, ok := same[f.Name]; ok && g.r.IntN(6) > 0 {
					a.Value = known
					s.Args = append(s.Args, a)
					continue
				}
			}
			often := 6
			if isKey(f) {
				often = 3
			}
			if s.Args = append(s.Args, a); g.r.IntN(often) == 0 {
				g.extreme(&s, i)
			}
			same[f.Name] = s.Args[i].Value
		}
		if sl.gives {
			givers = append(givers, s.ID)
		}
		in.Steps = append(in.Steps, s)
	}
}
