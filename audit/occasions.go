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
	heard codec.Side // who sends the messages; mostly the one that is bound
	types string     // their names; "*" is any, "#" is any with a code, "-" any other
	rules string     // without the protocol's name before them
}

const (
	peer   = codec.Peer
	server = codec.Server
)

// occasions are by protocol.
var occasions = map[*codec.Protocol][]occasion{
	gearman.Protocol: {
		{peer, peer, "#", "packet.magic packet.magic-direction packet.type-known packet.type-direction packet.size-cap args.missing args.surplus args.trailing-nul"},
		{peer, peer, "-", "admin.command-known admin.arguments admin.spacing admin.line-length"},
		{peer, peer, "WORK_COMPLETE WORK_FAIL WORK_EXCEPTION WORK_DATA WORK_WARNING WORK_STATUS", "worker.uses-the-handle"},
		{peer, peer, "WORK_COMPLETE WORK_FAIL WORK_EXCEPTION", "work.final"},
		{peer, peer, "GRAB_JOB GRAB_JOB_UNIQ GRAB_JOB_ALL", "worker.announces-first"},
		{peer, peer, "PRE_SLEEP", "worker.asks-before-sleep worker.hears-before-sleep"},
		{peer, server, "NOOP", "worker.asks-when-woken"},

		{server, server, "#", "packet.magic packet.magic-direction packet.type-known packet.type-direction packet.size-cap args.missing args.surplus args.trailing-nul role.responses"},
		{server, server, "-", "admin.reply-form admin.reply-asked-for"},
		{server, server, "ECHO_RES", "echo.same-data"},
		{server, server, "JOB_CREATED", "submit.created submit.handles-distinct submit.order submit.empty-unique submit.coalesce submit.coalesce-workload submit.unique-per-function submit.unique-reusable"},
		{server, server, "JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL", "grab.assign grab.once submit.opaque-workload worker.can-do work.final"},
		{server, server, "JOB_ASSIGN_UNIQ", "grab.assign-unique"},
		{server, server, "JOB_ASSIGN_ALL", "grab.all"},
		{server, server, "NO_JOB", "grab.no-job"},
		{server, server, "NOOP", "worker.awake-undisturbed"},
		{server, peer, "CANT_DO", "worker.cant-do"},
		{server, peer, "RESET_ABILITIES", "worker.reset"},
		{server, server, "WORK_COMPLETE WORK_FAIL WORK_EXCEPTION WORK_DATA WORK_WARNING WORK_STATUS", "submit.created-first"},
		{server, server, "WORK_COMPLETE", "work.complete"},
		{server, server, "WORK_FAIL", "work.fail"},
		{server, server, "WORK_EXCEPTION", "work.exception work.exception-unasked"},
		{server, server, "WORK_DATA", "work.data"},
		{server, server, "WORK_WARNING", "work.warning"},
		{server, server, "WORK_STATUS", "work.status"},
		{server, server, "OPTION_RES", "option.exceptions option.unknown"},
		{server, server, "STATUS_RES", "status.answered status.unknown status.running status.finished"},
		{server, peer, "SUBMIT_JOB_BG SUBMIT_JOB_HIGH_BG SUBMIT_JOB_LOW_BG SUBMIT_REDUCE_JOB_BACKGROUND", "submit.bg-detached"},
		{server, peer, "SUBMIT_JOB_EPOCH", "epoch.background"},
		{server, peer, "SUBMIT_JOB_SCHED", "sched.background"},
	},
	beanstalk.Protocol: {
		{peer, peer, "*", "line.crlf line.length line.direction command.known command.arguments command.spacing"},
		{peer, peer, "put", "body.bytes put.body-crlf put.max-job-size"},

		{server, server, "*", "line.crlf line.direction reply.asked-for reply.form"},
		{server, server, "INSERTED BURIED_JOB", "job.id-unique put.expected-crlf"},
		{server, server, "RESERVED", "body.verbatim body.bytes body.crlf job.exclusive tube.separate"},
		{server, server, "FOUND", "body.verbatim body.bytes body.crlf delete.gone"},
		{server, server, "DELETED", "delete.others-job delete.not-found"},
		{server, server, "USING", "use.using list.used tube.default-used"},
		{server, peer, "watch", "watch.watching watch.twice"},
		{server, peer, "ignore", "ignore.watching ignore.last ignore.not-watched ignore.no-more-jobs"},
		{server, peer, "list-tubes-watched", "list.watched"},
		{server, server, "TIMED_OUT", "reserve.blocks reserve.timeout-expires reserve.timeout-negative"},
		{server, server, "DEADLINE_SOON", "deadline-soon.own-jobs deadline-soon.not-earlier"},
		{server, peer, "delete", "delete.reserved"},
		{server, peer, "release", "release.released release.not-found"},
		{server, peer, "bury", "bury.buried bury.not-found"},
		{server, peer, "touch", "touch.touched touch.not-found"},
		{server, peer, "reserve-job", "reserve-job.reserved"},
		{server, peer, "peek", "peek.by-id"},
		{server, peer, "peek-ready peek-delayed peek-buried", "peek.used-tube"},
		{server, server, "KICKED", "kick.bound"},
		{server, peer, "stats-job", "stats-job.id stats-job.tube stats-job.state"},
		{server, peer, "stats-tube", "stats-tube.name"},
		{server, peer, "quit", "quit.closes"},
		{server, server, "stats-reply list-reply", "reply.yaml"},
	},
	danga.Protocol: {
		{peer, peer, "*", "packet.magic packet.type-known packet.type-direction packet.size-cap args.missing args.surplus args.trailing-nul"},
		{peer, peer, "job_create_req job_status_req job_complete_req", "sync.one-at-a-time"},
		{peer, peer, "job_status_announce", "status.no-job"},
		{peer, peer, "job_complete_announce", "complete.no-job"},

		{server, server, "*", "packet.magic packet.type-known packet.type-direction packet.size-cap args.missing args.surplus args.trailing-nul"},
		{server, server, "job_create_res", "create.answered create.answered-first async.handle async.handles-distinct dup.empty-off dup.per-name"},
		{server, server, "job_status_res job_complete_res", "application.only-answers async.not-streamed throwaway.silent"},
		{server, server, "job_complete_res", "complete.elapsed"},
		{server, server, "job_assign_res", "assign.asked-for connect.needed connect.capabilities connect.replaces worker.one-task"},
		{server, server, "noop", "sleep.once sleep.awake-undisturbed"},
		{server, peer, "worker_disconnect", "disconnect.no-more"},
	},
	gearmonkey.Protocol: {
		{peer, peer, "HMSET_IDLE PUBLISH_CREATE", "create.order"},
		{peer, peer, "LPUSH_QUEUE ZADD_SCHEDULED", "create.once"},
		{peer, peer, "PUBLISH_START HMSET_BUSY", "receive.order"},
		{peer, peer, "HMSET_DONE EXPIRE_JOB PUBLISH_FINISH LPUSH_LOCK EXPIRE_LOCK", "done.order"},
		{peer, peer, "EXPIRE_JOB", "done.expire-job"},
		{peer, peer, "LPUSH_LOCK", "done.lock"},
		{peer, peer, "EXPIRE_LOCK", "done.lock-expires"},
		{peer, peer, "EVALSHA_SCHEDULED", "loop.script-sha1"},
		{peer, peer, "BRPOP_QUEUES", "loop.brpop-timeout"},

		{server, server, "UNLOCKED POPPED", "server.brpop"},
		{server, server, "DUE", "server.evalsha-due"},
	},
}

// matches reports whether a type is one of an occasion's.
func (o *occasion) matches(t *codec.Type) bool {
	switch o.types {
	case "*":
		return true
	case "#":
		return t.Code != 0
	case "-":
		return t.Code == 0
	}
	for name := range strings.FieldsSeq(o.types) {
		if name == t.Name {
			return true
		}
	}
	return false
}

// Statement is what the document says that one side is bound to.
type Statement struct {
	Rule  *codec.Rule
	Bound codec.Side
	Times int // messages that were an occasion

	roles codec.Role // whose messages may be one
	by    [8]int     // Times by role
}

// exercised counts, for each statement that an audit can judge, the messages that were an occasion
// to break it. They stand in the order of the manifest, those of the peers first.
func exercised(p *codec.Protocol, seen *[2][]int, servers bool) []Statement {
	type key struct {
		rule  codec.RuleID
		bound codec.Side
	}
	all := map[key]*Statement{}
	note := func(rule codec.RuleID, bound codec.Side, t *codec.Type, heard codec.Side) {
		if rule == "" {
			return
		}
		st := all[key{rule, bound}]
		if st == nil {
			st = &Statement{Bound: bound}
			all[key{rule, bound}] = st
		}
		roles := t.Req
		if heard == server {
			roles = t.Res
		}
		n := seen[heard][t.Index]
		st.roles |= roles
		st.Times += n
		for i := range st.by {
			if roles&(1<<i) != 0 {
				st.by[i] += n
			}
		}
	}
	for _, t := range p.Types {
		for _, side := range [...]codec.Side{peer, server} {
			if !t.Sends(side) {
				continue
			}
			ids := map[codec.RuleID]bool{}
			for _, list := range [...][]codec.Field{t.Fields, t.Repeat} {
				for i := range list {
					f := &list[i]
					ids[f.Rule], ids[f.MaxRule], ids[f.NonEmpty] = true, true, true
				}
			}
			for id := range ids {
				note(id, side, t, side)
			}
			for i, list := 0, occasions[p]; i < len(list); i++ {
				if o := &list[i]; o.heard == side && o.matches(t) {
					for id := range strings.FieldsSeq(o.rules) {
						note(codec.RuleID(p.Name+"."+id), o.bound, t, side)
					}
				}
			}
		}
	}
	var out []Statement
	for _, bound := range [...]codec.Side{peer, server} {
		for i := range p.Rules {
			if st := all[key{p.Rules[i].ID, bound}]; st != nil && (bound == peer || servers) {
				st.Rule = &p.Rules[i]
				out = append(out, *st)
			}
		}
	}
	return out
}
