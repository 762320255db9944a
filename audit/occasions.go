package audit

import (
	"strings"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
)

// occasion says which messages are an occasion to break rules: whoever is bound has then kept
// them, or not. Rules of the form of a field have theirs by the rows of the protocol.
type occasion struct {
	bound codec.Side
	heard codec.Side                             // who sends the messages; mostly the one that is bound
	types string                                 // their names, or one of the kinds
	rules string                                 // without the protocol's name before them
	when  func(*sight, *line, *codec.Frame) bool // which of the messages; nil is any
}

const (
	peer   = codec.Peer
	server = codec.Server
)

// occasions are by protocol.
var occasions = map[*codec.Protocol][]occasion{
	gearman.Protocol: {
		{peer, peer, "#", "packet.magic packet.magic-direction packet.type-known packet.type-direction packet.size-cap", nil},
		{peer, peer, "#several", "args.missing", nil},
		{peer, peer, "#bounded", "args.surplus", nil},
		{peer, peer, "#text", "args.trailing-nul", nil},
		{peer, peer, "-", "admin.command-known admin.line-length", nil},
		{peer, peer, "-several", "admin.arguments admin.spacing", nil},
		{peer, peer, "WORK_COMPLETE WORK_FAIL WORK_EXCEPTION WORK_DATA WORK_WARNING WORK_STATUS", "worker.uses-the-handle", nil},
		{peer, peer, "WORK_COMPLETE WORK_FAIL WORK_EXCEPTION", "work.final", nil},
		{peer, peer, "GRAB_JOB GRAB_JOB_UNIQ GRAB_JOB_ALL", "worker.announces-first", nil},
		{peer, peer, "PRE_SLEEP", "worker.asks-before-sleep worker.hears-before-sleep", nil},
		{peer, server, "NOOP", "worker.asks-when-woken", nil},

		{server, server, "#", "packet.magic packet.magic-direction packet.type-known packet.type-direction packet.size-cap role.responses", nil},
		{server, server, "#several", "args.missing", nil},
		{server, server, "#bounded", "args.surplus", nil},
		{server, server, "#text", "args.trailing-nul", nil},
		{server, server, "-", "admin.reply-form admin.reply-asked-for", nil},
		{server, server, "ECHO_RES", "echo.same-data", nil},
		{server, server, "JOB_CREATED", "submit.created", nil},
		{server, server, "JOB_CREATED", "submit.handles-distinct", another},
		{server, server, "JOB_CREATED", "submit.order", oneOfSeveral},
		{server, server, "JOB_CREATED", "submit.empty-unique", created(func(j *creation) bool { return j.unique == "" })},
		{server, server, "JOB_CREATED", "submit.coalesce-workload", created(func(j *creation) bool { return j.unique == "-" })},
		{server, server, "JOB_CREATED", "submit.coalesce", created(func(j *creation) bool { return j.again && j.unique != "" })},
		{server, server, "JOB_CREATED", "submit.unique-per-function", created(func(j *creation) bool { return j.elsewhere })},
		{server, server, "JOB_CREATED", "submit.unique-reusable", created(func(j *creation) bool { return j.afterwards && j.unique != "" })},
		{server, server, "JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL", "grab.assign grab.once submit.opaque-workload worker.can-do work.final", nil},
		{server, server, "JOB_ASSIGN_UNIQ", "grab.assign-unique", nil},
		{server, server, "JOB_ASSIGN_ALL", "grab.all", nil},
		{server, server, "NO_JOB", "grab.no-job", nil},
		{server, server, "NOOP", "worker.awake-undisturbed", nil},
		{server, peer, "CANT_DO", "worker.cant-do", nil},
		{server, peer, "RESET_ABILITIES", "worker.reset", nil},
		{server, server, "WORK_COMPLETE WORK_FAIL WORK_EXCEPTION WORK_DATA WORK_WARNING WORK_STATUS", "submit.created-first", nil},
		{server, server, "WORK_COMPLETE", "work.complete", nil},
		{server, server, "WORK_FAIL", "work.fail", nil},
		{server, server, "WORK_EXCEPTION", "work.exception work.exception-unasked", nil},
		{server, server, "WORK_DATA", "work.data", nil},
		{server, server, "WORK_WARNING", "work.warning", nil},
		{server, server, "WORK_STATUS", "work.status", nil},
		{server, server, "OPTION_RES", "option.exceptions", nil},
		{server, peer, "OPTION_REQ", "option.unknown", has(0, func(v string) bool { return v != "exceptions" })},
		{server, server, "STATUS_RES", "status.answered", nil},
		{server, server, "STATUS_RES", "status.unknown", job(unknown)},
		{server, server, "STATUS_RES", "status.running", job(assigned)},
		{server, server, "STATUS_RES", "status.finished", job(ended)},
		{server, peer, "SUBMIT_JOB_BG SUBMIT_JOB_HIGH_BG SUBMIT_JOB_LOW_BG SUBMIT_REDUCE_JOB_BACKGROUND", "submit.bg-detached", nil},
		{server, peer, "SUBMIT_JOB_EPOCH", "epoch.background", nil},
		{server, peer, "SUBMIT_JOB_SCHED", "sched.background", nil},
	},
	beanstalk.Protocol: {
		{peer, peer, "*", "line.crlf line.length line.direction command.known command.arguments command.spacing", nil},
		{peer, peer, "put", "body.bytes put.body-crlf put.max-job-size", nil},

		{server, server, "*", "line.crlf line.direction reply.asked-for reply.form", nil},
		{server, server, "INSERTED BURIED_JOB", "put.expected-crlf", nil},
		{server, server, "INSERTED BURIED_JOB", "job.id-unique", another},
		{server, server, "RESERVED", "body.verbatim body.bytes body.crlf", nil},
		{server, server, "RESERVED", "job.exclusive", behind(1, "RESERVED")},
		{server, server, "RESERVED", "tube.separate", func(s *sight, _ *line, _ *codec.Frame) bool { return len(s.tubes) > 1 }},
		{server, server, "FOUND", "body.verbatim body.bytes body.crlf", nil},
		{server, peer, "peek reserve-job", "delete.gone", job(ended)},
		{server, server, "DELETED", "delete.others-job delete.not-found", nil},
		{server, peer, "use", "use.using", nil},
		{server, peer, "list-tube-used", "list.used", nil},
		{server, peer, "list-tube-used put", "tube.default-used", func(_ *sight, l *line, _ *codec.Frame) bool { return !l.chose }},
		{server, peer, "watch", "watch.watching", nil},
		{server, peer, "watch", "watch.twice", func(_ *sight, l *line, f *codec.Frame) bool { return l.watches(f) }},
		{server, peer, "ignore", "ignore.watching ignore.no-more-jobs", nil},
		{server, server, "NOT_IGNORED", "ignore.last", nil},
		{server, peer, "ignore", "ignore.not-watched", func(_ *sight, l *line, f *codec.Frame) bool { return !l.watches(f) }},
		{server, peer, "list-tubes-watched", "list.watched", nil},
		{server, server, "TIMED_OUT", "reserve.timeout-expires", nil},
		{server, peer, "reserve", "reserve.blocks", nil},
		{server, peer, "reserve-with-timeout", "reserve.timeout-negative", has(0, func(v string) bool { return strings.HasPrefix(v, "-") })},
		{server, server, "DEADLINE_SOON", "deadline-soon.own-jobs deadline-soon.not-earlier", nil},
		{server, peer, "delete", "delete.reserved", nil},
		{server, peer, "release", "release.released release.not-found", nil},
		{server, peer, "bury", "bury.buried bury.not-found", nil},
		{server, peer, "touch", "touch.touched touch.not-found", nil},
		{server, peer, "reserve-job", "reserve-job.reserved", nil},
		{server, peer, "peek", "peek.by-id", nil},
		{server, peer, "peek-ready peek-delayed peek-buried", "peek.used-tube", nil},
		{server, server, "KICKED", "kick.bound", nil},
		{server, peer, "stats-job", "stats-job.id stats-job.tube stats-job.state", nil},
		{server, peer, "stats-tube", "stats-tube.name", nil},
		{server, peer, "quit", "quit.closes", nil},
		{server, server, "stats-reply list-reply", "reply.yaml", nil},
	},
	danga.Protocol: {
		{peer, peer, "*", "packet.magic packet.type-known packet.type-direction packet.size-cap", nil},
		{peer, peer, "*several", "args.missing", nil},
		{peer, peer, "*bounded", "args.surplus", nil},
		{peer, peer, "worker_connect job_status_req job_complete_req", "args.trailing-nul", nil},
		{peer, peer, "job_create_req job_status_req job_complete_req", "sync.one-at-a-time", kind(0)},
		{peer, peer, "job_status_announce", "status.no-job", nil},
		{peer, peer, "job_complete_announce", "complete.no-job", nil},
		{peer, peer, "worker_sleep", "sleep.hears-first", nil},

		{server, server, "*", "packet.magic packet.type-known packet.type-direction packet.size-cap", nil},
		{server, server, "*several", "args.missing", nil},
		{server, server, "*bounded", "args.surplus", nil},
		{server, server, "job_create_res", "args.trailing-nul", present},
		{server, server, "job_create_res", "create.answered", nil},
		{server, server, "job_create_res", "create.answered-first", created(func(j *creation) bool { return j.kind == 0 })},
		{server, server, "job_create_res", "async.handle", created(func(j *creation) bool { return j.kind == 1 })},
		{server, server, "job_create_res", "async.handles-distinct", created(func(j *creation) bool { return j.kind == 1 && j.another })},
		{server, server, "job_create_res", "dup.empty-off", created(func(j *creation) bool { return j.kind == 1 && j.again && j.unique == "" })},
		{server, server, "job_create_res", "dup.per-name", created(func(j *creation) bool { return j.kind == 1 && j.elsewhere })},
		{server, server, "job_status_res job_complete_res", "application.only-answers", nil},
		{server, server, "job_status_res job_complete_res", "async.not-streamed", kind(1)},
		{server, server, "job_status_res job_complete_res", "throwaway.silent", kind(2)},
		{server, server, "job_complete_res", "complete.elapsed", nil},
		{server, server, "job_assign_res", "assign.asked-for connect.capabilities worker.one-task", nil},
		{server, server, "job_assign_res", "connect.replaces", behind(2, "worker_connect")},
		{server, peer, "job_assign_req", "connect.needed", func(_ *sight, l *line, _ *codec.Frame) bool { return l.said["worker_connect"] == 0 }},
		{server, server, "noop", "sleep.awake-undisturbed", nil},
		{server, server, "noop", "sleep.once", behind(1, "worker_sleep")},
		{server, peer, "worker_disconnect", "disconnect.no-more", nil},
	},
	gearmonkey.Protocol: {
		{peer, peer, "HMSET_IDLE PUBLISH_CREATE", "create.order", nil},
		{peer, peer, "LPUSH_QUEUE ZADD_SCHEDULED", "create.once", nil},
		{peer, peer, "PUBLISH_START HMSET_BUSY", "receive.order", nil},
		{peer, peer, "HMSET_DONE EXPIRE_JOB PUBLISH_FINISH LPUSH_LOCK EXPIRE_LOCK", "done.order", nil},
		{peer, peer, "EXPIRE_JOB", "done.expire-job", nil},
		{peer, peer, "LPUSH_LOCK", "done.lock", nil},
		{peer, peer, "EXPIRE_LOCK", "done.lock-expires", nil},
		{peer, peer, "EVALSHA_SCHEDULED", "loop.script-sha1", nil},
		{peer, peer, "BRPOP_QUEUES", "loop.brpop-timeout loop.brpop-on-nil", nil},

		{server, server, "UNLOCKED POPPED", "server.brpop", nil},
		{server, server, "DUE", "server.evalsha-due", nil},
	},
}

// kinds are what types may be of beside a list of names: "*" is any, "#" any with a code, "-" any other. "several" are
// those with arguments, "bounded" those that do not end in any bytes, "text" those of them that end in a text.
var kinds = map[string]func(*codec.Type) bool{
	"*":        func(*codec.Type) bool { return true },
	"#":        func(t *codec.Type) bool { return t.Code != 0 },
	"-":        func(t *codec.Type) bool { return t.Code == 0 },
	"*several": several,
	"#several": func(t *codec.Type) bool { return t.Code != 0 && several(t) },
	"-several": func(t *codec.Type) bool { return t.Code == 0 && several(t) },
	"*bounded": func(t *codec.Type) bool { return end(t) != codec.Opaque },
	"#bounded": func(t *codec.Type) bool { return t.Code != 0 && end(t) != codec.Opaque },
	"#text":    func(t *codec.Type) bool { return t.Code != 0 && end(t) != codec.Opaque && several(t) },
}

func several(t *codec.Type) bool { return len(t.Fields) > 0 }

// end is the kind of a type's last field; that of one without fields is framing.
func end(t *codec.Type) codec.Kind {
	if len(t.Fields) == 0 {
		return codec.Literal
	}
	return t.Fields[len(t.Fields)-1].Kind
}

// matches reports whether a type is one of an occasion's.
func (o *occasion) matches(t *codec.Type) bool {
	if is := kinds[o.types]; is != nil {
		return is(t)
	}
	for name := range strings.FieldsSeq(o.types) {
		if name == t.Name {
			return true
		}
	}
	return false
}
