package fuzz

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"jobwire/codec"
)

// dialect is what fuzzing has to know of a protocol beside its rows.
type dialect struct {
	protocol *codec.Protocol

	// sentinel is a request that changes nothing and is answered at once, by the reply.
	// Where nonced, its last argument comes back.
	sentinel, reply string
	nonced          bool

	// names are the labels of fields whose values peers have in common. While several
	// conversations are held with one server, each has its own, led by a prefix.
	names map[string][]string
	keep  []string // values of them that mean something
	keys  []string // labels of other fields whose values tell things apart

	// prelude is what a connection says first where others use the server too: rows with
	// the name that stands for ones own.
	prelude [][]string

	// harvest are ways to ask for what is queued under a name, which stands for $.
	harvest [][][]string

	// shared are requests about what the server numbers for all: bytes that hold one are not
	// sent where others use it too.
	shared *regexp.Regexp

	ofAll string // rules that begin so are about lists of what all users of the server have: judged only where nobody else is

	// excuses are refusals that depend on what models do not follow; what comes behind one is
	// not judged by them.
	excuses *regexp.Regexp

	caps []codec.RuleID // bounds of the codec's own, which servers need not have

	never  []string // types that are not sent: the server's end would be no fault
	bytes  []string // what no bytes sent may contain, in small letters
	sticky []string // types that change a name for good
	reuse  bool     // a name is as new if nothing is queued or running under it

	// binary reports whether a message begins that is framed so that the end is known though what
	// was sent before it, or it itself, is wrong.
	binary func(raw []byte) bool

	sentinelArgs func(nonce []byte) [][]byte
	isSentinel   func(f *codec.Frame) bool // of a reply without a nonce
	blocks       func(f *codec.Frame) bool // requests that may be answered late
	waits        []string                  // types of requests that may be
	inOrder      bool                      // every request has one reply, in their order
	pushes       []string                  // but for these
	releases     func(f *codec.Frame) bool // replies that end a wait, where there is no order

	// fromPeers reports whether a value of the server's must be one that a peer has sent.
	fromPeers func(f *codec.Frame, fd *codec.Field) bool
}

func always([]byte) bool { return true }
func never([]byte) bool  { return false }

// dialects are all protocols, by their names.
var dialects = map[string]dialect{
	"gearman": {
		sentinel: "ECHO_REQ", reply: "ECHO_RES", nonced: true,
		sentinelArgs: func(nonce []byte) [][]byte { return [][]byte{nonce} },
		names:        map[string][]string{"Function": {"a", "b", "c"}},
		keys:         []string{"Unique ID"},
		harvest: [][][]string{
			{{"CAN_DO", "$"}, {"GRAB_JOB_UNIQ"}, {"GRAB_JOB"}},
			{{"CAN_DO", "$"}, {"GRAB_JOB_ALL"}},
			{{"CAN_DO", "$"}, {"PRE_SLEEP"}},
		},
		never:    []string{"shutdown"},
		bytes:    []string{"shutdown"},
		sticky:   []string{"maxqueue", "create-function", "drop-function", "SUBMIT_JOB_EPOCH", "SUBMIT_JOB_SCHED"},
		reuse:    true,
		ofAll:    "gearman.admin.",
		excuses:  regexp.MustCompile(`^ERR (?i:INTERNAL_ERROR|UNKNOWN_ERROR) `),
		releases: func(f *codec.Frame) bool { return f.Type.Code == 0 },
		caps:     []codec.RuleID{"gearman.admin.line-length", "gearman.packet.size-cap", "gearman.admin.pipelining-cap"},
		binary:   func(raw []byte) bool { return len(raw) > 0 && raw[0] == 0 },
		fromPeers: func(f *codec.Frame, fd *codec.Field) bool {
			return f.Type.Code != 0 && has([]string{"Function", "Unique ID", "Workload", "Data", "Response", "Exception", "Warning", "Option", "Reducer"}, fd.Name)
		},
	},
	"beanstalk": {
		sentinel: "list-tube-used", reply: "USING",
		sentinelArgs: func([]byte) [][]byte { return nil },
		names:        map[string][]string{"Tube": {"a", "b"}},
		keep:         []string{"default"},
		harvest: [][][]string{
			{{"watch", "$"}, {"reserve-with-timeout", "0"}, {"reserve-with-timeout", "0"}},
			{{"watch", "$"}, {"ignore", "default"}, {"reserve-with-timeout", "0"}},
			{{"use", "$"}, {"peek-ready"}},
		},
		prelude: [][]string{{"use", "a"}, {"watch", "a"}, {"ignore", "default"}},
		shared:  regexp.MustCompile(`(?i)delete|release|bury|touch|kick-job|reserve-job|stats-job|peek `),
		caps:    []codec.RuleID{"beanstalk.line.length"},
		sticky:  []string{"pause-tube"},
		reuse:   true,
		binary:  never,
		inOrder: true,
		waits:   []string{"reserve", "reserve-with-timeout"},
		blocks: func(f *codec.Frame) bool {
			return f.Type.Name == "reserve" || f.Type.Name == "reserve-with-timeout" && string(f.Arg(0)) != "0"
		},
		fromPeers: func(f *codec.Frame, fd *codec.Field) bool {
			return fd.Name == "Body" || fd.Name == "Tube" && f.Type.Name == "USING" && string(f.Arg(0)) != "default"
		},
	},
	"danga": {
		sentinel: "job_status_req", reply: "job_status_res",
		sentinelArgs: func(nonce []byte) [][]byte { return [][]byte{append([]byte("none:"), nonce...)} },
		isSentinel: func(f *codec.Frame) bool {
			return bytes.HasSuffix(f.Raw, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
		},
		names:   map[string][]string{"Job name": {"a", "b", "c"}},
		keys:    []string{"Duplicate key"},
		harvest: [][][]string{{{"worker_connect", "$"}, {"job_assign_req"}}},
		binary:  always,
		blocks: func(f *codec.Frame) bool {
			return f.Type.Name == "job_create_req" && len(f.Arg(3)) > 0 && f.Arg(3)[0] == 0
		},
		releases: func(f *codec.Frame) bool { return f.Type.Name == "job_complete_res" },
		fromPeers: func(f *codec.Frame, fd *codec.Field) bool {
			return has([]string{"Job name", "Args", "Result data"}, fd.Name)
		},
	},
	"gearmonkey": {
		sentinel: "command", reply: "bulk", nonced: true,
		sentinelArgs: func(nonce []byte) [][]byte { return [][]byte{[]byte("PING"), nonce} },
		names:        map[string][]string{"Function": {"a", "b", "c"}},
		keys:         []string{"ID", "Priority"},
		bytes: strings.Fields("shutdown debug config flush client replica slave save failover cluster monitor sync " +
			"module multi hello reset quit eval wait acl kill swapdb info keys scan time random memory object role latency slowlog lolwut"),
		harvest: [][][]string{
			{{"LRANGE_QUEUE", "$", "high", "0", "-1"}, {"LRANGE_QUEUE", "$", "normal", "0", "-1"}, {"LRANGE_QUEUE", "$", "low", "0", "-1"}},
			{{"BRPOP_QUEUES", "$", "1"}},
		},
		binary:  never,
		inOrder: true,
		pushes:  strings.Fields("EVENT message pmessage smessage"),
		excuses: regexp.MustCompile(`^-.*(only \(P\|S\)SUBSCRIBE|rror compiling script|not an integer|not a float|overflow|out of range|timeout is|invalid expire|wrong number of arguments)`),
		caps:    []codec.RuleID{"resp.message.size-cap", "resp.line.length"},
		blocks: func(f *codec.Frame) bool {
			low := bytes.ToLower(f.Raw)
			for _, w := range []string{"brpop", "blpop", "blmove", "bzpop", "blmpop", "bzmpop", "xread", "subscribe"} {
				if bytes.Contains(low, []byte(w)) {
					return true
				}
			}
			return false
		},
		fromPeers: func(*codec.Frame, *codec.Field) bool { return false }, // scripts and counters make up replies
	},
}

func dialectOf(p *codec.Protocol) *dialect {
	d := dialects[p.Name]
	d.protocol = p
	return &d
}

// namesFor returns the pool of a field's values, or nil.
func (d *dialect) namesFor(label string) []string { return d.names[label] }

// place is the beginning of names in conversations. Where others use the server, one's own
// prefix, of the same length, is put in its place, in bytes of any kind.
const place = "ZZZZZZZ"

// placed returns a name of the pool as conversations have it.
func (d *dialect) placed(f *codec.Field, v []byte) []byte {
	if f != nil && len(v) == 1 && has(d.names[f.Name], string(v)) {
		return append([]byte(place), v...)
	}
	return v
}

// own returns the name as it is sent under a prefix.
func (d *dialect) own(f *codec.Field, v []byte, prefix string) []byte {
	if prefix == "" || f == nil || d.names[f.Name] == nil || bytes.Contains(v, []byte(place)) || len(v)+len(prefix) > 100 {
		return v
	}
	if has(d.keep, string(v)) {
		return v
	}
	return append([]byte(prefix), v...)
}

// common reports whether a message of ours is about names that others may have too.
func (d *dialect) common(f *codec.Frame, prefix string) bool {
	if prefix == "" || f.Type == nil || f.Type.Name == "ignore" {
		return false
	}
	for i := range f.Spans {
		if d.names[f.Spans[i].Field.Name] != nil && !bytes.HasPrefix(f.Value(i), []byte(prefix)) {
			return true
		}
	}
	return false
}

// behind returns bytes with the end of those that were sent before them, of which they may be a part.
func behind(said, b []byte) []byte {
	const longest = 32 // of the words that count
	return slices.Concat(said[max(0, len(said)-longest):], b)
}

// shares reports whether bytes, behind others, ask for what the server numbers for all.
func (d *dialect) shares(said, b []byte) bool {
	return d.shared != nil && d.shared.Match(behind(said, b))
}

// forbidden reports whether bytes are not to be sent behind others.
func (d *dialect) forbidden(said, b []byte) bool {
	if len(d.bytes) == 0 {
		return false
	}
	low := bytes.ToLower(behind(said, b))
	for _, w := range d.bytes {
		if bytes.Contains(low, []byte(w)) {
			return true
		}
	}
	return false
}

func has(list []string, s string) bool {
	for _, x := range list {
		if strings.EqualFold(x, s) {
			return true
		}
	}
	return false
}
