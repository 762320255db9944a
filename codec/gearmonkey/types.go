package gearmonkey

import (
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/resp"
)

// Roles of a peer. Redis does not distinguish them: in a transcript, they show the purpose of a connection.
// An Operator inspects and repairs.
const (
	Client codec.Role = 1 << iota
	Worker
	Operator

	client = Client | Operator
	worker = Worker | Operator
	anyone = Client | Worker | Operator
)

// Statuses of a job that has ended.
const (
	StatusSuccess = "success"
	StatusError   = "error"
)

// Priorities as they occur in the names of queues, from the most urgent on.
const (
	Scheduled = "scheduled"
	High      = "high"
	Normal    = "normal"
	Low       = "low"
)

// Sections of the specification that declare the message types.
const (
	secClient = "Client commands"
	secWorker = "Worker commands"
	secBeyond = "beyond the specification"
)

// fields declares the arguments of the message types by name. Other arguments are arbitrary bytes: functions,
// inputs, outputs. A function may contain colons, because the ID that follows it contains none.
var fields = map[string]codec.Field{
	"Function":    {Means: codec.Queue},
	"Input":       {Means: codec.Payload},
	"Output":      {Means: codec.Payload},
	"ID":          {Means: codec.JobID, Kind: codec.Number, Rule: RuleID},
	"Priority":    {Means: codec.PriorityOf, Kind: codec.Text, Values: []string{High, Normal, Low}, Rule: RulePriority},
	"Scheduled":   {Means: codec.StartTime, Kind: codec.Number, Rule: RuleTimestamp},
	"System date": {Means: codec.Clock, Kind: codec.Number, Rule: RuleTimestamp},
	"Timeout":     {Means: codec.Timeout, Unit: time.Second, Kind: codec.Number, Rule: RuleTimeout},
	"Status": {Means: codec.Outcome, Kind: codec.Text, Values: []string{StatusSuccess, StatusError},
		Rule: RuleStatus},
	"Script":  {Only: true, Examples: []string{Script, hashedScript}},
	"SHA1":    {Kind: codec.Text, Width: 40, Chars: "0123456789abcdefABCDEF", Rule: RuleSHA1},
	"Seconds": {Kind: codec.Number, Rule: RuleSeconds},
	"Event":   {NonEmpty: RuleEvent},
	"Field":   {Examples: []string{"status", "input", "output"}},
	"Count":   {Kind: codec.Signed, Rule: RuleCount},
	"Start":   {Kind: codec.Signed, Rule: RuleRange},
	"Stop":    {Kind: codec.Signed, Rule: RuleRange},
}

// typeDecls are the message types in the order in which they are tried. Of those that begin with the same command,
// the first that matches is chosen.
var typeDecls = []resp.TypeDecl{
	{Name: "GET_COUNT", Req: client, Section: secClient, Does: codec.Query, Races: true, Form: "GET count:{Function}"},
	{Name: "INCR_UID", Req: client, Section: secClient, Does: codec.Store, Form: "INCR uid:{Function}",
		Replies: []string{"ID"}},
	{Name: "HMSET_IDLE", Req: client, Section: secClient, Does: codec.Store,
		Form: "HMSET job:{Function}:{ID} status idle input {Input}"},
	{Name: "PUBLISH_CREATE", Req: client, Section: secClient, Does: codec.Notify, Races: true,
		Form: "PUBLISH channel:{Function} create:{ID}"},
	{Name: "ZADD_SCHEDULED", Req: client, Section: secClient, Does: codec.Submit, Background: true,
		Form: "ZADD queue:{Function}:scheduled {Scheduled} {ID}"},
	{Name: "LPUSH_QUEUE", Req: client, Section: secClient, Does: codec.Submit, Background: true, Races: true,
		Form: "LPUSH queue:{Function}:{Priority} {ID}"},
	{Name: "BRPOP_LOCK", Req: client, Section: secClient, Does: codec.Wait, Blocks: codec.Always,
		Form: "BRPOP lock:{Function}:{ID} {Timeout}", Replies: []string{"UNLOCKED"}},
	{Name: "HGETALL_JOB", Req: anyone, Section: secClient, Does: codec.Query, Form: "HGETALL job:{Function}:{ID}",
		Replies: []string{"JOB"}},

	{Name: "SCRIPT_LOAD", Req: worker, Section: secWorker, Does: codec.Configure, Form: "SCRIPT LOAD {Script}",
		Replies: []string{"SHA1"}},
	{Name: "INCR_COUNT", Req: worker, Section: secWorker, Does: codec.Register, Races: true,
		Form: "INCR count:{Function}"},
	{Name: "EVALSHA_SCHEDULED", Req: worker, Section: secWorker, Does: codec.Ask,
		Form: "EVALSHA {SHA1} 1 queue:{Function}:scheduled {System date}", Replies: []string{"DUE"}},
	{Name: "BRPOP_QUEUES", Req: worker, Section: secWorker, Does: codec.Ask, Blocks: codec.Always,
		Form:    "BRPOP queue:{Function}:high queue:{Function}:normal queue:{Function}:low {Timeout}",
		Replies: []string{"POPPED"}},
	{Name: "HGET_INPUT", Req: worker, Section: secBeyond, Does: codec.Query, Form: "HGET job:{Function}:{ID} input"},
	{Name: "PUBLISH_START", Req: worker, Section: secWorker, Does: codec.Notify, Races: true,
		Form: "PUBLISH channel:{Function} start:{ID}"},
	{Name: "HMSET_BUSY", Req: worker, Section: secWorker, Does: codec.Store,
		Form: "HMSET job:{Function}:{ID} status busy"},
	{Name: "HMSET_PROGRESS", Req: worker, Section: secWorker, Does: codec.Status,
		Form: "HMSET job:{Function}:{ID} status:dividend {Dividend} status:divisor {Divisor}"},
	{Name: "HMSET_DONE", Req: worker, Section: secWorker, Does: codec.Complete,
		Form: "HMSET job:{Function}:{ID} status {Status} output {Output}"},
	{Name: "EXPIRE_JOB", Req: worker, Section: secWorker, Does: codec.Store, Form: "EXPIRE job:{Function}:{ID} {Seconds}"},
	{Name: "PUBLISH_FINISH", Req: worker, Section: secWorker, Does: codec.Notify, Races: true,
		Form: "PUBLISH channel:{Function} finish:{ID}"},
	{Name: "LPUSH_LOCK", Req: worker, Section: secWorker, Does: codec.Store, Form: "LPUSH lock:{Function}:{ID} {Value}"},
	{Name: "EXPIRE_LOCK", Req: worker, Section: secWorker, Does: codec.Store,
		Form: "EXPIRE lock:{Function}:{ID} {Seconds}"},
	{Name: "DECR_COUNT", Req: worker, Section: secWorker, Does: codec.Unregister, Races: true,
		Form: "DECR count:{Function}"},

	{Name: "SUBSCRIBE_CHANNEL", Req: Operator, Section: secBeyond, Does: codec.Configure,
		Form: "SUBSCRIBE channel:{Function}", Replies: []string{"SUBSCRIBED"}},
	{Name: "UNSUBSCRIBE_CHANNEL", Req: Operator, Section: secBeyond, Does: codec.Configure,
		Form: "UNSUBSCRIBE channel:{Function}", Replies: []string{"UNSUBSCRIBED"}},
	{Name: "HMGET_JOB", Req: worker, Section: secBeyond, Does: codec.Query,
		Form: "HMGET job:{Function}:{ID} {Field} {Field...}"},
	{Name: "HGET_STATUS", Req: Operator, Section: secBeyond, Does: codec.Query, Form: "HGET job:{Function}:{ID} status"},
	{Name: "TTL_JOB", Req: Operator, Section: secBeyond, Does: codec.Query, Varies: true, Form: "TTL job:{Function}:{ID}"},
	{Name: "TTL_LOCK", Req: Operator, Section: secBeyond, Does: codec.Query, Varies: true,
		Form: "TTL lock:{Function}:{ID}"},
	{Name: "LRANGE_QUEUE", Req: Operator, Section: secBeyond, Does: codec.Query,
		Form: "LRANGE queue:{Function}:{Priority} {Start} {Stop}"},
	{Name: "ZRANGE_SCHEDULED", Req: Operator, Section: secBeyond, Does: codec.Query,
		Form: "ZRANGE queue:{Function}:scheduled {Start} {Stop}"},
	{Name: "LLEN_LOCK", Req: Operator, Section: secBeyond, Does: codec.Query, Form: "LLEN lock:{Function}:{ID}"},
	{Name: "EXISTS_JOB", Req: Operator, Section: secBeyond, Does: codec.Query, Form: "EXISTS job:{Function}:{ID}"},
	{Name: "SET_COUNT", Req: Operator, Section: secBeyond, Does: codec.Configure, Form: "SET count:{Function} {Count}"},
	{Name: "SET_UID", Req: Operator, Section: secBeyond, Does: codec.Configure, Form: "SET uid:{Function} {ID}"},
	{Name: "DEL_JOB", Req: Operator, Section: secBeyond, Does: codec.Delete, Form: "DEL job:{Function}:{ID}"},

	{Name: "ID", Res: anyone, Section: secClient, Does: codec.Answer, Form: ":{ID}"},
	{Name: "UNLOCKED", Res: anyone, Section: secClient, Does: codec.Complete, Form: "lock:{Function}:{ID} {Value}"},
	{Name: "JOB", Res: anyone, Section: secClient, Does: codec.Answer, Form: "{Field...} {Value...}"},
	{Name: "SHA1", Res: anyone, Section: secWorker, Does: codec.Answer, Form: "${SHA1}"},
	{Name: "DUE", Res: anyone, Section: secWorker, Does: codec.Assign, Form: "queue:{Function}:scheduled {ID}"},
	{Name: "POPPED", Res: anyone, Section: secWorker, Does: codec.Assign, Form: "queue:{Function}:{Priority} {ID}"},
	{Name: "EVENT", Res: anyone, Section: secBeyond, Does: codec.Published, Push: true,
		Form: "message channel:{Function} {Event}:{ID}"},
	{Name: "SUBSCRIBED", Res: anyone, Section: secBeyond, Does: codec.Answer, Push: true,
		Form: "subscribe channel:{Function} :{Count}"},
	{Name: "UNSUBSCRIBED", Res: anyone, Section: secBeyond, Does: codec.Answer, Push: true,
		Form: "unsubscribe channel:{Function} :{Count}"},
}

// unsafeWords are words in commands of Redis that shut down, empty, block or reconfigure the server for all
// clients, and in commands whose replies depend on other clients.
var unsafeWords = strings.Fields("shutdown debug config flush client replica slave save failover cluster monitor sync " +
	"module multi hello reset quit eval wait acl kill swapdb info keys scan time random memory object role latency slowlog lolwut")

// commands declare the effects of other commands of Redis on queues and on the connection.
var commands = map[string]*codec.Type{
	"BLPOP": pops, "BRPOP": pops, "BRPOPLPUSH": pops, "BLMOVE": pops, "BLMPOP": pops, "BZPOPMIN": pops, "BZPOPMAX": pops,
	"BZMPOP": pops,
	"XREAD":  waits, "XREADGROUP": waits, "WAIT": waits, "WAITAOF": waits,
	"SUBSCRIBE": {Does: codec.Configure}, "PSUBSCRIBE": {Does: codec.Configure}, "SSUBSCRIBE": {Does: codec.Configure},
	"ECHO": {Does: codec.Echo}, "PING": {Does: codec.Echo},
	"QUIT": {Does: codec.Leave}, "SHUTDOWN": {Does: codec.Shutdown},
	"INFO": varies, "TIME": varies, "CLIENT": varies, "CONFIG": varies, "COMMAND": varies, "HELLO": varies,
	"RANDOMKEY": varies, "MEMORY": varies,
	"DEBUG": varies, "ROLE": varies, "LASTSAVE": varies, "DBSIZE": varies, "KEYS": varies, "SCAN": varies,
	"OBJECT": varies, "SLOWLOG": varies,
	"LATENCY": varies, "TTL": varies, "PTTL": varies, "ACL": varies, "MODULE": varies, "LOLWUT": varies,
}

var (
	pops   = &codec.Type{Does: codec.Ask, Blocks: codec.Always}
	waits  = &codec.Type{Does: codec.Query, Blocks: codec.Always}
	varies = &codec.Type{Does: codec.Query, Varies: true}
)
