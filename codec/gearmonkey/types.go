package gearmonkey

import (
	"jobwire/codec"
	"jobwire/codec/resp"
)

// Roles of a peer. To Redis they are all the same; they tell the readers of a
// transcript what a connection is for. An Operator looks and repairs.
const (
	Client codec.Role = 1 << iota
	Worker
	Operator

	client = Client | Operator
	worker = Worker | Operator
	anyone = Client | Worker | Operator
)

// Statuses of a job.
const (
	StatusIdle    = "idle"
	StatusBusy    = "busy"
	StatusSuccess = "success"
	StatusError   = "error"
)

// Priorities, as the names of queues have them, from the most urgent on.
const (
	Scheduled = "scheduled"
	High      = "high"
	Normal    = "normal"
	Low       = "low"
)

// Sections of the document that the rows come from.
const (
	secClient = "Client commands"
	secWorker = "Worker commands"
	secBeyond = "beyond the document"
)

// fields declares the arguments of the rows by name. Others are strings of any
// bytes: functions, inputs, outputs. A function may hold colons, since the ID
// behind it does not.
var fields = map[string]codec.Field{
	"ID":          {Kind: codec.Number, Rule: RuleID},
	"Priority":    {Kind: codec.Text, Values: []string{High, Normal, Low}, Rule: RulePriority},
	"Scheduled":   {Kind: codec.Number, Rule: RuleTimestamp},
	"System date": {Kind: codec.Number, Rule: RuleTimestamp},
	"Timeout":     {Kind: codec.Number, Rule: RuleTimeout},
	"Status":      {Kind: codec.Text, Values: []string{StatusSuccess, StatusError}, Rule: RuleStatus},
	"SHA1":        {Kind: codec.Text, Width: 40, Chars: "0123456789abcdefABCDEF", Rule: RuleSHA1},
	"Seconds":     {Kind: codec.Number, Rule: RuleSeconds},
	"Event":       {NonEmpty: RuleEvent},
	"Count":       {Kind: codec.Signed, Rule: RuleCount},
	"Start":       {Kind: codec.Signed, Rule: RuleRange},
	"Stop":        {Kind: codec.Signed, Rule: RuleRange},
}

// rows are tried in this order; of those that begin with one command the first
// that fits is taken.
var rows = []resp.Row{
	{Name: "GET_COUNT", Req: client, Section: secClient, Form: "GET count:{Function}"},
	{Name: "INCR_UID", Req: client, Section: secClient, Form: "INCR uid:{Function}", Replies: []string{"ID"}},
	{Name: "HMSET_IDLE", Req: client, Section: secClient, Form: "HMSET job:{Function}:{ID} status idle input {Input}"},
	{Name: "PUBLISH_CREATE", Req: client, Section: secClient, Form: "PUBLISH channel:{Function} create:{ID}"},
	{Name: "ZADD_SCHEDULED", Req: client, Section: secClient, Form: "ZADD queue:{Function}:scheduled {Scheduled} {ID}"},
	{Name: "LPUSH_QUEUE", Req: client, Section: secClient, Form: "LPUSH queue:{Function}:{Priority} {ID}"},
	{Name: "BRPOP_LOCK", Req: client, Section: secClient, Form: "BRPOP lock:{Function}:{ID} {Timeout}", Replies: []string{"UNLOCKED"}},
	{Name: "HGETALL_JOB", Req: anyone, Section: secClient, Form: "HGETALL job:{Function}:{ID}", Replies: []string{"JOB"}},

	{Name: "SCRIPT_LOAD", Req: worker, Section: secWorker, Form: "SCRIPT LOAD {Script}", Replies: []string{"SHA1"}},
	{Name: "INCR_COUNT", Req: worker, Section: secWorker, Form: "INCR count:{Function}"},
	{Name: "EVALSHA_SCHEDULED", Req: worker, Section: secWorker, Form: "EVALSHA {SHA1} 1 queue:{Function}:scheduled {System date}", Replies: []string{"DUE"}},
	{Name: "BRPOP_QUEUES", Req: worker, Section: secWorker, Form: "BRPOP queue:{Function}:high queue:{Function}:normal queue:{Function}:low {Timeout}", Replies: []string{"POPPED"}},
	{Name: "HGET_INPUT", Req: worker, Section: secBeyond, Form: "HGET job:{Function}:{ID} input"},
	{Name: "PUBLISH_START", Req: worker, Section: secWorker, Form: "PUBLISH channel:{Function} start:{ID}"},
	{Name: "HMSET_BUSY", Req: worker, Section: secWorker, Form: "HMSET job:{Function}:{ID} status busy"},
	{Name: "HMSET_PROGRESS", Req: worker, Section: secWorker, Form: "HMSET job:{Function}:{ID} status:dividend {Dividend} status:divisor {Divisor}"},
	{Name: "HMSET_DONE", Req: worker, Section: secWorker, Form: "HMSET job:{Function}:{ID} status {Status} output {Output}"},
	{Name: "EXPIRE_JOB", Req: worker, Section: secWorker, Form: "EXPIRE job:{Function}:{ID} {Seconds}"},
	{Name: "PUBLISH_FINISH", Req: worker, Section: secWorker, Form: "PUBLISH channel:{Function} finish:{ID}"},
	{Name: "LPUSH_LOCK", Req: worker, Section: secWorker, Form: "LPUSH lock:{Function}:{ID} {Value}"},
	{Name: "EXPIRE_LOCK", Req: worker, Section: secWorker, Form: "EXPIRE lock:{Function}:{ID} {Seconds}"},
	{Name: "DECR_COUNT", Req: worker, Section: secWorker, Form: "DECR count:{Function}"},

	{Name: "SUBSCRIBE_CHANNEL", Req: Operator, Section: secBeyond, Form: "SUBSCRIBE channel:{Function}", Replies: []string{"SUBSCRIBED"}},
	{Name: "UNSUBSCRIBE_CHANNEL", Req: Operator, Section: secBeyond, Form: "UNSUBSCRIBE channel:{Function}", Replies: []string{"UNSUBSCRIBED"}},
	{Name: "HMGET_JOB", Req: worker, Section: secBeyond, Form: "HMGET job:{Function}:{ID} {Field} {Field...}"},
	{Name: "HGET_STATUS", Req: Operator, Section: secBeyond, Form: "HGET job:{Function}:{ID} status"},
	{Name: "TTL_JOB", Req: Operator, Section: secBeyond, Form: "TTL job:{Function}:{ID}"},
	{Name: "TTL_LOCK", Req: Operator, Section: secBeyond, Form: "TTL lock:{Function}:{ID}"},
	{Name: "LRANGE_QUEUE", Req: Operator, Section: secBeyond, Form: "LRANGE queue:{Function}:{Priority} {Start} {Stop}"},
	{Name: "ZRANGE_SCHEDULED", Req: Operator, Section: secBeyond, Form: "ZRANGE queue:{Function}:scheduled {Start} {Stop}"},
	{Name: "LLEN_LOCK", Req: Operator, Section: secBeyond, Form: "LLEN lock:{Function}:{ID}"},
	{Name: "EXISTS_JOB", Req: Operator, Section: secBeyond, Form: "EXISTS job:{Function}:{ID}"},
	{Name: "SET_COUNT", Req: Operator, Section: secBeyond, Form: "SET count:{Function} {Count}"},
	{Name: "SET_UID", Req: Operator, Section: secBeyond, Form: "SET uid:{Function} {ID}"},
	{Name: "DEL_JOB", Req: Operator, Section: secBeyond, Form: "DEL job:{Function}:{ID}"},

	{Name: "ID", Res: anyone, Section: secClient, Form: ":{ID}"},
	{Name: "UNLOCKED", Res: anyone, Section: secClient, Form: "lock:{Function}:{ID} {Value}"},
	{Name: "JOB", Res: anyone, Section: secClient, Form: "{Field...} {Value...}"},
	{Name: "SHA1", Res: anyone, Section: secWorker, Form: "${SHA1}"},
	{Name: "DUE", Res: anyone, Section: secWorker, Form: "queue:{Function}:scheduled {ID}"},
	{Name: "POPPED", Res: anyone, Section: secWorker, Form: "queue:{Function}:{Priority} {ID}"},
	{Name: "EVENT", Res: anyone, Section: secBeyond, Push: true, Form: "message channel:{Function} {Event}:{ID}"},
	{Name: "SUBSCRIBED", Res: anyone, Section: secBeyond, Push: true, Form: "subscribe channel:{Function} :{Count}"},
	{Name: "UNSUBSCRIBED", Res: anyone, Section: secBeyond, Push: true, Form: "unsubscribe channel:{Function} :{Count}"},
}
