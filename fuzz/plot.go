package fuzz

import (
	"path"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/gen"
)

// plots are what peers do one behind the other, by protocol: conversations that get far, which
// messages at random seldom do. A scene is who acts, by a number, and what he sends: one of some
// types, or of all that a pattern matches. "leaves" and "waits" are deeds too. Behind "=" stands
// what the server answers with a value of its choice, "?" ends what may be left out.
var plots = map[string][]string{
	"gearman": {
		"0 =SUBMIT_*; 1 CAN_DO*; 1 =GRAB_*; 0 leaves?; 1 WORK_*; 0 GET_STATUS*?; 1 WORK_*?; 1 leaves?",
		"0 =SUBMIT_*; 2 =SUBMIT_*; 0 leaves?; 1 CAN_DO*; 1 =GRAB_*; 2 leaves?; 1 WORK_*; 3 GET_STATUS*?",
		"1 CAN_DO*; 1 PRE_SLEEP; 1 CANT_DO|RESET_ABILITIES|CAN_DO*|PRE_SLEEP|leaves?; 0 =SUBMIT_*; 1 =GRAB_*?; 1 WORK_*?",
		"0 =SUBMIT_*; 1 CAN_DO_TIMEOUT; 1 =GRAB_*; 1 waits; 1 WORK_*; 1 leaves?; 0 GET_STATUS*?",
		"0 =SUBMIT_*?; 2 maxqueue|create-function|drop-function; 0 =SUBMIT_*; 0 =SUBMIT_*?; 2 status|prioritystatus|show-*|cancel-job|drop-function|maxqueue",
		"1 SET_CLIENT_ID?; 1 CAN_DO*; 2 workers?; 1 RESET_ABILITIES|CANT_DO|SET_CLIENT_ID|CAN_DO*; 2 workers|status|prioritystatus",
		"0 OPTION_REQ; 0 =SUBMIT_*; 1 CAN_DO*; 1 =GRAB_*; 1 WORK_EXCEPTION|WORK_WARNING|WORK_DATA|WORK_STATUS; 1 WORK_*",
	},
	"beanstalk": {
		"0 use?; 0 =put; 0 =put?; 1 watch?; 1 ignore?; 1 =reserve*; 1 delete|release|bury|touch|kick-job|stats-job; 1 leaves?; 2 stats*|peek*|list*?; 1 =reserve-with-timeout?",
		"0 =put; 1 =reserve*; 1 bury|release; 2 kick|kick-job|peek-*|delete; 1 =reserve*; 2 stats-*?",
		"1 watch; 1 watch|ignore; 1 ignore?; 0 use?; 0 =put; 1 =reserve*; 2 list-*|stats-tube?",
		"0 use?; 0 =put; 0 pause-tube; 1 watch?; 1 =reserve-with-timeout; 1 waits?; 2 stats-tube|kick|peek-ready",
		"1 =reserve*; 1 leaves?; 0 =put; 2 =reserve-with-timeout; 2 delete|touch|release|bury; 0 quit?",
	},
	"danga": {
		"1 worker_connect; 0 =job_create_req; 1 =job_assign_req; 1 job_status_announce?; 0 job_status_req?; 1 job_complete_announce|leaves; 0 job_complete_req|job_status_req",
		"1 worker_connect; 1 worker_sleep; 0 =job_create_req; 2 =job_create_req?; 1 =job_assign_req; 0 leaves?; 1 job_*_announce; 2 job_*_req?",
		"0 =job_create_req; 1 worker_connect; 2 worker_connect; 1 =job_assign_req; 1 leaves|worker_disconnect; 2 =job_assign_req; 2 job_complete_announce; 0 job_complete_req",
	},
	"gearmonkey": {
		"0 SET_UID?; 0 =INCR_UID; 0 HMSET_IDLE; 0 LPUSH_QUEUE|ZADD_SCHEDULED; 1 =BRPOP_QUEUES; 1 HGET_INPUT|HMGET_JOB; 1 HMSET_*; 1 EXPIRE_JOB?; 2 HGET*|TTL_*|EXISTS_*",
		"0 LPUSH_QUEUE; 0 LPUSH_QUEUE?; 1 =BRPOP_QUEUES; 2 LRANGE_QUEUE; 1 LPUSH_LOCK; 0 BRPOP_LOCK; 0 DEL_JOB?; 2 LLEN_LOCK",
		"1 =BRPOP_QUEUES|BRPOP_LOCK; 1 leaves?; 0 LPUSH_QUEUE|LPUSH_LOCK; 2 LRANGE_QUEUE|LLEN_LOCK",
		"2 SUBSCRIBE_CHANNEL; 0 PUBLISH_*; 2 UNSUBSCRIBE_CHANNEL?; 1 PUBLISH_*?",
		"0 SET_COUNT?; 0 INCR_COUNT|DECR_COUNT; 1 GET_COUNT; 0 ZADD_SCHEDULED; 2 ZRANGE_SCHEDULED",
	},
}

// scene is one step of a plot.
type scene struct {
	conn  int
	types []*codec.Type     // to choose from, and
	verbs []transcript.Verb // these
	gives bool
	may   bool // be left out
}

var goings = []transcript.Verb{transcript.Closes, transcript.HalfCloses, transcript.Resets}

// readPlots reads a protocol's plots. One that names a type that there is not is a mistake in this
// package.
func readPlots(p *codec.Protocol) (all [][]scene) {
	for _, plot := range plots[p.Name] {
		var scenes []scene
		for part := range strings.SplitSeq(plot, ";") {
			who, what, _ := strings.Cut(strings.TrimSpace(part), " ")
			var s scene
			s.conn, _ = strconv.Atoi(who)
			what, s.gives = strings.CutPrefix(what, "=")
			what, s.may = strings.CutSuffix(what, "?")
			for word := range strings.SplitSeq(what, "|") {
				s.add(p, word)
			}
			if len(s.types)+len(s.verbs) == 0 {
				panic("nothing in " + p.Name + " is " + what)
			}
			scenes = append(scenes, s)
		}
		all = append(all, scenes)
	}
	return all
}

func (s *scene) add(p *codec.Protocol, word string) {
	switch word {
	case "leaves":
		s.verbs = append(s.verbs, goings...)
	case "waits":
		s.verbs = append(s.verbs, transcript.Nothing)
	default:
		for _, t := range p.Types {
			if ok, _ := path.Match(word, t.Name); ok && t.Req != 0 {
				s.types = append(s.types, t)
			}
		}
	}
}

// play makes a conversation of a plot. What names a thing is mostly the same throughout.
func (b *breeder) play(c *Conv) {
	scenes := b.plots[b.r.IntN(len(b.plots))]
	alike := map[string][]byte{}
	var givers []int
	tame := b.r.IntN(3) > 0
	for i := range scenes {
		sc := &scenes[i]
		if sc.may && b.r.IntN(2) == 0 {
			continue
		}
		s := Step{ID: c.nextID(), Conn: sc.conn}
		if n := b.r.IntN(len(sc.types) + len(sc.verbs)); n >= len(sc.types) {
			if s.Verb = sc.verbs[n-len(sc.types)]; s.Verb == transcript.Nothing {
				s.For = pauses[b.r.IntN(len(pauses))]
			}
			c.Steps = append(c.Steps, s)
			continue
		} else {
			s.Verb, s.Type = transcript.Send, sc.types[n]
		}
		m := gen.Of(b.r, s.Type, gen.Options{Tame: tame})
		s.CRLF = m.CRLF
		for i, v := range m.Args {
			f := argField(s.Type, i)
			a := Arg{Value: b.d.placed(f, v)}
			switch {
			case f == nil:
			case f.Assigned && len(givers) > 0 && b.r.IntN(12) > 0:
				a.Of = givers[len(givers)-1]
				if b.r.IntN(4) == 0 {
					a.Of = givers[b.r.IntN(len(givers))]
				}
			case b.d.names[f.Name] != nil || has(b.d.keys, f.Name):
				if known, ok := alike[f.Name]; ok && b.r.IntN(6) > 0 {
					a.Value = known
					s.Args = append(s.Args, a)
					continue
				}
			}
			often := 6
			if f != nil && has(b.d.keys, f.Name) {
				often = 3
			}
			if s.Args = append(s.Args, a); b.r.IntN(often) == 0 {
				b.stretch(&s, i)
			}
			if f != nil {
				alike[f.Name] = s.Args[i].Value
			}
		}
		if sc.gives {
			givers = append(givers, s.ID)
		}
		c.Steps = append(c.Steps, s)
	}
}

// pauses are how long peers wait, most often past a timeout of a second.
var pauses = []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 1100 * time.Millisecond, 1600 * time.Millisecond, 2200 * time.Millisecond}

// stretch takes an argument to a bound: a length at which buffers end, or a number at which
// arithmetic does.
func (b *breeder) stretch(s *Step, i int) {
	f := argField(s.Type, i)
	if f == nil || len(f.Values) > 0 || f.Assigned && s.Args[i].Of > 0 && b.r.IntN(4) > 0 {
		return
	}
	if f.Kind == codec.Number || f.Kind == codec.Signed || f.Kind == codec.Uint {
		s.Args[i] = Arg{Value: b.edgeOf(f)}
		return
	}
	b.resize(s, i)
}

// edgeOf returns a number at a bound of the field's, or of what machines count with.
func (b *breeder) edgeOf(f *codec.Field) []byte {
	n := uint64(1)<<widths[b.r.IntN(len(widths))] + uint64(b.r.IntN(3)) - 1
	switch b.r.IntN(6) {
	case 0:
		n = uint64(b.r.IntN(3)) - 1
	case 1:
		n = f.Lo
	case 2:
		n = f.Hi - uint64(b.r.IntN(2))
	}
	if f.Kind == codec.Uint {
		v := make([]byte, f.Width)
		for i := range v {
			v[f.Width-1-i] = byte(n >> (8 * i))
		}
		return v
	}
	if f.Hi > 0 && n > f.Hi+1 {
		n = f.Hi
	}
	if f.Kind == codec.Signed {
		return strconv.AppendInt(nil, int64(n), 10)
	}
	return strconv.AppendUint(nil, n, 10)
}

// widths are those of numbers, in bits.
var widths = []int{7, 8, 15, 16, 31, 32, 63}
