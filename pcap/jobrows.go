package pcap

import (
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
)

// deed is what a message does to a job.
type deed uint8

const (
	doesConcerns deed = iota // nothing, but it tells the job
	doesSubmits              // the reply tells the handle
	doesQueues               // it has its handle already
	doesCreates              // tells the handle of the oldest submission that waits for one
	doesBuries               // takes it out of the queue, until it is kicked; a reply also creates it
	doesRefuses              // the oldest submission makes no job
	doesAssigns              // to whoever it is sent to
	doesExtends              // the worker has its whole time again
	doesLimits               // how long this worker may take for jobs of a function
	doesYields               // the worker's functions, or one of them: some servers take its jobs away
	doesFinishes             // the worker is done
	doesFails                // the worker has failed
	doesRaises               // the same, but it may say so once more
	doesRemoves              // from the queue, or done where the connection has it
	doesReturns              // to the queue
	doesKicks                // back into the queue
	doesWaits                // for the end
	doesTells                // the client of the end
	doesNames                // the tube of what is put from now on
	doesLeaves               // gives back what it has
	doesPops                 // what stands in a list that it answers with
	doesConfirms             // does what the request asked for
	doesAsks                 // how a job stands; the answer may tell of the end
)

// jobRow is a message that does something to a job.
type jobRow struct {
	from     codec.Side
	typ      string
	does     deed
	key      string // the argument that tells the job
	function string // the argument that tells the function or tube
	more     string // a number that matters: a time limit, a delay, a job type, a result
	unheard  bool   // nobody hears of the job's end, on purpose
}

// jobTable is how a protocol carries jobs.
type jobTable struct {
	protocol *codec.Protocol
	rows     []jobRow

	tube   string // that a new connection uses
	serial bool   // each request has one reply, in their order
	scoped bool   // a key counts within its function
	single bool   // a worker has one job at a time, and does not name it
	pooled bool   // what a worker says of a job may come on another connection
}

// jobTables say so for all protocols. Types that are not here but have a job's handle are
// taken to mention it.
var jobTables = []jobTable{
	{protocol: gearman.Protocol, rows: []jobRow{
		{from: codec.Peer, typ: "SUBMIT_JOB", does: doesSubmits, function: "Function"},
		{from: codec.Peer, typ: "SUBMIT_JOB_BG", does: doesSubmits, function: "Function", unheard: true},
		{from: codec.Peer, typ: "SUBMIT_JOB_HIGH", does: doesSubmits, function: "Function"},
		{from: codec.Peer, typ: "SUBMIT_JOB_HIGH_BG", does: doesSubmits, function: "Function", unheard: true},
		{from: codec.Peer, typ: "SUBMIT_JOB_LOW", does: doesSubmits, function: "Function"},
		{from: codec.Peer, typ: "SUBMIT_JOB_LOW_BG", does: doesSubmits, function: "Function", unheard: true},
		{from: codec.Peer, typ: "SUBMIT_JOB_SCHED", does: doesSubmits, function: "Function", unheard: true},
		{from: codec.Peer, typ: "SUBMIT_JOB_EPOCH", does: doesSubmits, function: "Function", more: "Epoch time", unheard: true},
		{from: codec.Peer, typ: "SUBMIT_REDUCE_JOB", does: doesSubmits, function: "Function"},
		{from: codec.Peer, typ: "SUBMIT_REDUCE_JOB_BACKGROUND", does: doesSubmits, function: "Function", unheard: true},
		{from: codec.Server, typ: "JOB_CREATED", does: doesCreates, key: "Job handle"},
		{from: codec.Server, typ: "ERROR", does: doesRefuses},
		{from: codec.Peer, typ: "CAN_DO_TIMEOUT", does: doesLimits, function: "Function", more: "Timeout"},
		{from: codec.Peer, typ: "CANT_DO", does: doesYields},
		{from: codec.Peer, typ: "RESET_ABILITIES", does: doesYields},
		{from: codec.Server, typ: "JOB_ASSIGN", does: doesAssigns, key: "Job handle", function: "Function"},
		{from: codec.Server, typ: "JOB_ASSIGN_UNIQ", does: doesAssigns, key: "Job handle", function: "Function"},
		{from: codec.Server, typ: "JOB_ASSIGN_ALL", does: doesAssigns, key: "Job handle", function: "Function"},
		{from: codec.Peer, typ: "WORK_COMPLETE", does: doesFinishes, key: "Job handle"},
		{from: codec.Peer, typ: "WORK_FAIL", does: doesFails, key: "Job handle"},
		{from: codec.Peer, typ: "WORK_EXCEPTION", does: doesRaises, key: "Job handle"},
		{from: codec.Server, typ: "WORK_COMPLETE", does: doesTells, key: "Job handle"},
		{from: codec.Server, typ: "WORK_FAIL", does: doesTells, key: "Job handle"},
		{from: codec.Server, typ: "WORK_EXCEPTION", does: doesTells, key: "Job handle"},
	}},
	{protocol: beanstalk.Protocol, tube: "default", serial: true, rows: []jobRow{
		{from: codec.Peer, typ: "use", does: doesNames, function: "Tube"},
		{from: codec.Peer, typ: "put", does: doesSubmits, more: "Delay", unheard: true},
		{from: codec.Server, typ: "INSERTED", does: doesCreates, key: "Job ID"},
		{from: codec.Server, typ: "BURIED_JOB", does: doesBuries, key: "Job ID"},
		{from: codec.Server, typ: "JOB_TOO_BIG", does: doesRefuses},
		{from: codec.Server, typ: "EXPECTED_CRLF", does: doesRefuses},
		{from: codec.Server, typ: "DRAINING", does: doesRefuses},
		{from: codec.Server, typ: "OUT_OF_MEMORY", does: doesRefuses},
		{from: codec.Server, typ: "INTERNAL_ERROR", does: doesRefuses},
		{from: codec.Server, typ: "BAD_FORMAT", does: doesRefuses},
		{from: codec.Server, typ: "UNKNOWN_COMMAND", does: doesRefuses},
		{from: codec.Server, typ: "RESERVED", does: doesAssigns, key: "Job ID"},
		{from: codec.Peer, typ: "touch", does: doesExtends, key: "Job ID"},
		{from: codec.Peer, typ: "delete", does: doesRemoves, key: "Job ID"},
		{from: codec.Peer, typ: "release", does: doesReturns, key: "Job ID", more: "Delay"},
		{from: codec.Peer, typ: "bury", does: doesBuries, key: "Job ID"},
		{from: codec.Peer, typ: "kick-job", does: doesKicks, key: "Job ID"},
		{from: codec.Server, typ: "TOUCHED", does: doesConfirms},
		{from: codec.Server, typ: "DELETED", does: doesConfirms},
		{from: codec.Server, typ: "RELEASED", does: doesConfirms},
		{from: codec.Server, typ: "BURIED", does: doesConfirms},
		{from: codec.Server, typ: "KICKED_JOB", does: doesConfirms},
	}},
	{protocol: gearmonkey.Protocol, scoped: true, pooled: true, rows: []jobRow{
		{from: codec.Peer, typ: "LPUSH_QUEUE", does: doesQueues, key: "ID", function: "Function"},
		{from: codec.Peer, typ: "ZADD_SCHEDULED", does: doesQueues, key: "ID", function: "Function", more: "Scheduled"},
		{from: codec.Server, typ: "POPPED", does: doesAssigns, key: "ID", function: "Function"},
		{from: codec.Server, typ: "list", does: doesPops}, // a worker may name other queues than the document does
		{from: codec.Server, typ: "DUE", does: doesAssigns, key: "ID", function: "Function"},
		{from: codec.Peer, typ: "HMSET_DONE", does: doesFinishes, key: "ID", function: "Function", more: "Status"},
		{from: codec.Peer, typ: "BRPOP_LOCK", does: doesWaits, key: "ID", function: "Function"},
		{from: codec.Server, typ: "UNLOCKED", does: doesTells, key: "ID", function: "Function"},
	}},
	{protocol: danga.Protocol, single: true, rows: []jobRow{
		{from: codec.Peer, typ: "job_create_req", does: doesSubmits, function: "Job name", more: "Job type"},
		{from: codec.Server, typ: "job_create_res", does: doesCreates, key: "Job handle"},
		{from: codec.Server, typ: "job_assign_res", does: doesAssigns, function: "Job name"},
		{from: codec.Peer, typ: "job_status_announce", does: doesExtends},
		{from: codec.Peer, typ: "job_complete_announce", does: doesFinishes, more: "Result code"},
		{from: codec.Peer, typ: "worker_disconnect", does: doesLeaves},
		{from: codec.Peer, typ: "job_complete_req", does: doesAsks, key: "Job handle"},
		{from: codec.Server, typ: "job_complete_res", does: doesTells, more: "Job status"},
	}},
}

// followed is a row with where its arguments stand: among the fields of the type, or -1.
type followed struct {
	*jobRow
	table                     *jobTable
	keyAt, functionAt, moreAt int
}

// followedRows lists the rows by type and side, with those that mention a job.
func followedRows() map[*codec.Type][2]*followed {
	rows := map[*codec.Type][2]*followed{}
	for i := range jobTables {
		tab := &jobTables[i]
		key, scope := "", ""
		for k := range tab.rows {
			r := &tab.rows[k]
			t := tab.protocol.TypeNamed(r.typ)
			both := rows[t]
			both[r.from] = follow(tab, t, r)
			rows[t] = both
			if r.key != "" {
				key = r.key
				if tab.scoped {
					scope = r.function
				}
			}
		}
		for _, t := range tab.protocol.Types {
			for from := codec.Peer; from <= codec.Server; from++ {
				both := rows[t]
				m := follow(tab, t, &jobRow{from: from, typ: t.Name, key: key, function: scope})
				if both[from] == nil && t.Sends(from) && m.keyAt >= 0 && (scope == "" || m.functionAt >= 0) {
					both[from] = m
					rows[t] = both
				}
			}
		}
	}
	return rows
}

func follow(tab *jobTable, t *codec.Type, r *jobRow) *followed {
	at := func(name string) int {
		for i := range t.Fields {
			if name != "" && t.Fields[i].Name == name {
				return i
			}
		}
		return -1
	}
	return &followed{r, tab, at(r.key), at(r.function), at(r.more)}
}

// arg returns an argument of a message, nil if it has none there.
func arg(f *codec.Frame, at int) []byte {
	if at < 0 {
		return nil
	}
	return f.Arg(at)
}

// number reads an argument: digits, or the bytes of an integer.
func number(f *codec.Frame, at int) uint64 {
	b := arg(f, at)
	if len(b) > 0 && f.Type.Fields[at].Kind == codec.Uint {
		n := uint64(0)
		for _, c := range b {
			n = n<<8 | uint64(c)
		}
		return n
	}
	n, bad := codec.ParseNumber(b)
	if bad >= 0 {
		return 0
	}
	return n
}
