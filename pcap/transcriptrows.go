package pcap

import (
	"bytes"
	"slices"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
)

// playNotes say of a protocol what its rows do not, and what who plays a recorded
// conversation again has to know. Rows are named; an argument is named behind a point.
type playNotes struct {
	answers map[string][]string // what answers a request at once, where the row does not say
	blocks  []string            // requests whose answer may wait for what others do
	creates []string            // answers that name a new job, or requests that make one
	ordinal bool                // the number of a job says in what order they were made
	assigns []string            // answers that give one to a worker
	counts  []string            // requests whose answer depends on how far others are
	polls   []string            // requests for a job
	content map[string][]int    // where jobs have no name: the arguments that tell them apart, of what makes one and of what gives it
	last    []string            // requests behind which the server closes
	theirs  []string            // what another server may say otherwise: rows, or arguments
	times   []string            // arguments that are seconds since 1970
	ties    map[string]string   // arguments, by their label alone, that tell which connections belong together, and of what kind that is
	jobs    []string            // labels of jobs that the codec does not know as chosen by the server
}

var submitted = []string{"JOB_CREATED", "ERROR"}

// playRows are those notes.
var playRows = map[*codec.Protocol]*playNotes{
	gearman.Protocol: {
		answers: map[string][]string{
			"SUBMIT_JOB": submitted, "SUBMIT_JOB_BG": submitted, "SUBMIT_JOB_HIGH": submitted, "SUBMIT_JOB_HIGH_BG": submitted,
			"SUBMIT_JOB_LOW": submitted, "SUBMIT_JOB_LOW_BG": submitted, "SUBMIT_JOB_SCHED": submitted, "SUBMIT_JOB_EPOCH": submitted,
			"SUBMIT_REDUCE_JOB": submitted, "SUBMIT_REDUCE_JOB_BACKGROUND": submitted,
			"GRAB_JOB": {"JOB_ASSIGN", "NO_JOB"}, "GRAB_JOB_UNIQ": {"JOB_ASSIGN_UNIQ", "JOB_ASSIGN", "NO_JOB"},
			"GRAB_JOB_ALL": {"JOB_ASSIGN_ALL", "JOB_ASSIGN_UNIQ", "JOB_ASSIGN", "NO_JOB"},
			"GET_STATUS":   {"STATUS_RES"}, "GET_STATUS_UNIQUE": {"STATUS_RES_UNIQUE"},
			"ECHO_REQ": {"ECHO_RES"}, "OPTION_REQ": {"OPTION_RES", "ERROR"},
		},
		creates: []string{"JOB_CREATED"},
		ordinal: true,
		assigns: []string{"JOB_ASSIGN", "JOB_ASSIGN_UNIQ", "JOB_ASSIGN_ALL"},
		polls:   []string{"GRAB_JOB", "GRAB_JOB_UNIQ", "GRAB_JOB_ALL"},
		last:    []string{"shutdown"},
		theirs: []string{"ERROR.Error text", "ERR.Error text", "workers-reply", "status-reply", "prioritystatus-reply", "show-jobs-reply",
			"show-unique-jobs-reply", "version-reply", "getpid-reply", "verbose-reply"},
		times: []string{"SUBMIT_JOB_EPOCH.Epoch time"},
		ties:  map[string]string{"Function": "function", "Reducer": "function", "Job handle": "job", "Unique ID": "unique"},
	},
	danga.Protocol: {
		answers: map[string][]string{
			"job_create_req": {"job_create_res"}, "job_assign_req": {"job_assign_res", "noop"}, "job_status_req": {"job_status_res"},
			"job_complete_req": {"job_complete_res"},
		},
		blocks:  []string{"job_complete_req"},
		creates: []string{"job_create_res"},
		assigns: []string{"job_assign_res"},
		polls:   []string{"job_assign_req"},
		content: map[string][]int{"job_create_req": {0, 4}, "job_assign_res": {0, 1}},
		last:    []string{"worker_disconnect"},
		ties:    map[string]string{"Job name": "function", "Job handle": "job"},
	},
	beanstalk.Protocol: {
		creates: []string{"INSERTED", "BURIED_JOB"},
		ordinal: true,
		assigns: []string{"RESERVED"},
		polls:   []string{"reserve", "reserve-with-timeout"},
		blocks:  []string{"reserve", "reserve-with-timeout"},
		last:    []string{"quit"},
		theirs:  []string{"OK", "stats-reply", "list-reply"},
		ties:    map[string]string{"Tube": "tube", "Job ID": "job"},
	},
	gearmonkey.Protocol: {
		blocks:  []string{"BRPOP_LOCK", "BRPOP_QUEUES", "BLPOP", "BRPOP", "BRPOPLPUSH", "BLMOVE", "BLMPOP", "BZPOPMIN", "BZPOPMAX", "XREAD", "WAIT"},
		creates: []string{"LPUSH_QUEUE"},
		assigns: []string{"POPPED", "DUE"},
		counts:  []string{"GET_COUNT", "PUBLISH_CREATE", "PUBLISH_START", "PUBLISH_FINISH", "LPUSH_QUEUE", "INCR_COUNT", "DECR_COUNT"},
		polls:   []string{"BRPOP_QUEUES"},
		last:    []string{"QUIT", "SHUTDOWN"},
		theirs: []string{"error.Error text", "TTL_JOB", "TTL_LOCK", "INFO", "TIME", "CLIENT", "CONFIG", "COMMAND", "HELLO", "RANDOMKEY", "MEMORY",
			"DEBUG", "ROLE", "LASTSAVE", "DBSIZE", "KEYS", "SCAN", "OBJECT", "SLOWLOG", "LATENCY", "TTL", "PTTL", "ACL", "MODULE", "LOLWUT"},
		times: []string{"ZADD_SCHEDULED.Scheduled", "EVALSHA_SCHEDULED.System date"},
		jobs:  []string{"ID"}, // no ties: keys may stand anywhere, so all connections to a Redis belong together
	},
}

// answersOf returns the rows that answer a request at once, or nil.
func (n *playNotes) answersOf(t *codec.Type) []string {
	if a := n.answers[t.Name]; a != nil {
		return a
	}
	return t.Replies
}

// noteName is how notes name a message: a Redis command of no row by its first word.
func noteName(st *step) string {
	if st.typ == nil {
		return ""
	}
	if len(st.args) > 0 && (st.typ.Name == "command" || st.typ.Name == "inline") {
		word, _, _ := bytes.Cut(bytes.TrimSpace(st.args[0]), []byte(" "))
		return string(bytes.ToUpper(word))
	}
	return st.typ.Name
}

// isTheirs reports whether a server may choose the argument, nil for all of them.
func (n *playNotes) isTheirs(t *codec.Type, fd *codec.Field) bool {
	return slices.Contains(n.theirs, t.Name) || fd != nil && slices.Contains(n.theirs, t.Name+"."+fd.Name)
}
