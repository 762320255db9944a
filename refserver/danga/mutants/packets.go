package mutants

import (
	"bytes"
	"slices"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/danga"
)

// packets are faults of the header.
var packets = []Mutant{
	{Name: "zero-magic-is-none", About: "A magic of zeros counts as none.",
		Kills: cases("magic.zeros"),
		Hook: magic(func(m []byte) []byte {
			if bytes.Equal(m, []byte{0, 0, 0, 0}) {
				return []byte(protocol.DefaultMagic)
			}
			return m
		})},
	{Name: "magic-of-seven-bits", About: "A magic is text: it comes back without its high bits.",
		Kills: cases("magic.any-bytes magic.each-its-own"),
		Hook: magic(func(m []byte) []byte {
			m = slices.Clone(m)
			for i := range m {
				m[i] &= 0x7f
			}
			return m
		})},
	{Name: "one-magic", About: "The first connection's magic is everybody's.",
		Kills: cases("magic.each-its-own"),
		Hook: func(b *bench) {
			var first []byte
			magic(func(m []byte) []byte {
				if first == nil {
					first = slices.Clone(m)
				}
				return first
			})(b)
		}},
	{Name: "magic-not-compared", About: "A magic may change.",
		Kills: cases("magic.changes magic.changes-in-a-byte"),
		Waive: []codec.RuleID{protocol.RuleMagic}},
	{Name: "magic-of-three-bytes", About: "The last byte of the magic is not compared.",
		Kills: cases("magic.changes-in-a-byte"),
		Hook: func(b *bench) {
			b.decode = func(s codec.Session, p []byte, f *frame) (int, error) {
				if len(p) >= 4 && string(p[:3]) == protocol.DefaultMagic[:3] && p[3] != protocol.DefaultMagic[3] {
					p = append([]byte(protocol.DefaultMagic), p[4:]...)
				}
				return s.Decode(codec.Peer, p, f)
			}
		}},
	{Name: "unknown-type-answered", About: "A packet of an unknown type is answered by a noop.",
		Kills: cases("type.beyond type.highest violation.others-unharmed violation.job-tried-again violation.job-goes-on"),
		Hook:  refused(protocol.RuleTypeKnown, func(b *bench, p *peer, _ *frame) bool { b.say(p, "noop"); return true })},
	{Name: "answers-returned", About: "What only applications are sent is sent back.",
		Kills: cases("direction.for-applications"),
		Hook:  returned(protocol.Application)},
	{Name: "noop-returned", About: "What only workers are sent is sent back.",
		Kills: cases("direction.for-workers"),
		Hook:  returned(protocol.Worker)},
	{Name: "creator-does-not-work", About: "Whoever has created a job gets none.",
		Kills: cases("direction.both-roles"),
		Hook: func(b *bench) {
			b.on("job_assign_req", func(p *peer, f *frame, _ *job) {
				if len(p.created) > 0 {
					b.say(p, "noop")
					return
				}
				b.pass(p, f)
			})
		}},
	{Name: "little-endian-length", About: "A length above 255 is written with its least significant byte first.",
		Kills: cases("length.two-bytes create.args-large complete.result-large"),
		Hook: func(b *bench) {
			b.out("job_assign_res job_complete_res", func(_ *peer, f *frame, _ *job) verdict {
				if len(f.Raw) <= 9+255 {
					return verdict{}
				}
				p := slices.Clone(f.Raw)
				slices.Reverse(p[5:9])
				return raw(p)
			})
		}},
	{Name: "magic-in-args-stripped", About: "Args that begin with the magic lose it.",
		Kills: cases("length.data-like-packets"),
		Hook: value("job_assign_res", 1, func(_ *bench, _ *peer, v string, _ *job) string {
			return strings.TrimPrefix(v, protocol.DefaultMagic)
		})},
	{Name: "huge-length-blocks", About: "Behind a length beyond the cap nobody is served.",
		Kills: cases("length.highest"),
		Hook: func(b *bench) {
			full := false
			refused(protocol.RuleSizeCap, func(*bench, *peer, *frame) bool { full = true; return false })(b)
			ignored("job_assign_req", func(*bench, *peer, *job) bool { return full })(b)
		}},
	{Name: "request-in-sleep-unanswered", About: "A worker that asks right behind its worker_sleep is not answered.",
		Kills: cases("flow.worst-case-elapsed length.zero sleep.not-for-others sleep.by-itself"),
		Hook:  ignored("job_assign_req", func(_ *bench, p *peer, _ *job) bool { return p.last == "worker_sleep" && p.woken == 0 })},
	{Name: "thousands-of-names-block", About: "A list with more names than are taken leaves nobody served.",
		Kills: cases("connect.thousands"),
		Hook: func(b *bench) {
			full := false
			refused(protocol.RuleNamesCap, func(*bench, *peer, *frame) bool { full = true; return false })(b)
			ignored("job_assign_req", func(*bench, *peer, *job) bool { return full })(b)
		}},
}

// magic changes the magic of what is sent.
func magic(to func(m []byte) []byte) Hook {
	return func(b *bench) {
		var every []string
		for _, t := range protocol.Protocol.Types {
			if t.Sends(codec.Server) {
				every = append(every, t.Name)
			}
		}
		b.out(strings.Join(every, " "), func(_ *peer, f *frame, _ *job) verdict {
			if m := to(f.Raw[:4]); !bytes.Equal(m, f.Raw[:4]) {
				return raw(append(slices.Clone(m), f.Raw[4:]...))
			}
			return verdict{}
		})
	}
}

// returned sends packets back that only a role is sent.
func returned(to codec.Role) Hook {
	return refused(protocol.RuleTypeDirection, func(b *bench, p *peer, f *frame) bool {
		if f.Type.Res != to {
			return false
		}
		b.blurt(p, string(f.Raw))
		return true
	})
}

// arguments are faults of what stands behind the header.
var arguments = []Mutant{
	{Name: "incomplete-job-answered", About: "A job of which something is missing is answered as if it were there.",
		Kills: cases("args.missing-name args.missing-key args.missing-type"),
		Hook:  told(protocol.RuleArgsMissing, "job_create_req", "job_create_res")},
	{Name: "empty-job-answered", About: "A job without any data is answered as if it were one.",
		Kills: cases("args.missing-all"),
		Hook: func(b *bench) {
			b.rejected = func(p *peer, f *frame, _ *codec.Error) bool {
				if f.Type == nil || f.Type.Name != "job_create_req" || len(f.Raw) > 9 {
					return false
				}
				b.say(p, "job_create_res")
				return true
			}
		}},
	{Name: "short-progress-passed-on", About: "Progress that lacks bytes is filled up.",
		Kills: cases("args.missing-of-status"),
		Hook: refused(protocol.RuleArgsMissing, func(b *bench, p *peer, f *frame) bool {
			if f.Type.Name != "job_status_announce" || p.job == nil {
				return false
			}
			b.toWaiting(p.job, "job_status_res", number(1), number(2), number(0))
			return true
		})},
	{Name: "no-code-is-success", About: "A result without a code is a success.",
		Kills: cases("args.missing-code"),
		Hook: refused(protocol.RuleArgsMissing, func(b *bench, p *peer, f *frame) bool {
			if f.Type.Name != "job_complete_announce" {
				return false
			}
			b.give(p, "job_complete_announce", "\x00", "")
			return true
		})},
	{Name: "length-of-empty-types-ignored", About: "What stands behind a type without arguments is the next packet.",
		Kills: cases("args.surplus-packet"),
		Hook: refused(protocol.RuleArgsSurplus, func(b *bench, p *peer, f *frame) bool {
			if f.Type.Name != "job_assign_req" {
				return false
			}
			b.give(p, "job_assign_req")
			b.give(p, "job_assign_req")
			return true
		})},
	{Name: "long-progress-read-from-its-end", About: "Of progress with bytes too many the last twelve count.",
		Kills: cases("args.surplus-of-status"),
		Hook: refused(protocol.RuleArgsSurplus, func(b *bench, p *peer, f *frame) bool {
			if f.Type.Name != "job_status_announce" || p.job == nil {
				return false
			}
			v := string(f.Raw[len(f.Raw)-12:])
			b.toWaiting(p.job, "job_status_res", v[:4], v[4:8], v[8:])
			return true
		})},
	{Name: "nul-handed-out", About: "A NUL behind the last name belongs to it, and comes back.",
		Kills: cases("args.nul-behind-names"),
		Hook: refused(protocol.RuleArgsTrailing, func(b *bench, p *peer, f *frame) bool {
			if f.Type.Name != "worker_connect" {
				return false
			}
			name := strings.TrimRight(string(f.Raw[9:]), "\x00")
			b.give(p, "worker_connect", name)
			b.out("job_assign_res", func(_ *peer, f *frame, _ *job) verdict { return changed(f, 1, "\x00"+arg(f, 1)) })
			return true
		})},
	{Name: "handle-with-nul-complete", About: "A handle with a NUL behind it names a job that is complete.",
		Kills: cases("args.nul-behind-handle"),
		Hook:  told(protocol.RuleArgsTrailing, "job_complete_req", "job_complete_res", number(1), "\x00", "")},
	{Name: "nameless-job-for-all", About: "A job without a name is anybody's.",
		Kills: cases("name.empty"),
		Hook: func(b *bench) {
			waits := false
			refused(protocol.RuleNameEmpty, func(*bench, *peer, *frame) bool { waits = true; return false })(b)
			b.on("job_assign_req", func(p *peer, f *frame, _ *job) {
				if waits {
					b.say(p, "job_assign_res", "nameless", "")
					return
				}
				b.pass(p, f)
			})
		}},
	{Name: "empty-handle-complete", About: "The empty handle names a job that is complete.",
		Kills: cases("handle.empty"),
		Hook:  told(protocol.RuleHandleEmpty, "job_complete_req", "job_complete_res", number(1), "\x00", "")},

	// Violations.
	{Name: "violation-closes-colleagues", About: "An unknown type ends the connections of all workers of the sender's names.",
		Kills: cases("violation.others-unharmed"),
		Hook: refused(protocol.RuleTypeKnown, func(b *bench, p *peer, _ *frame) bool {
			for _, q := range b.peers {
				if slices.ContainsFunc(p.can, q.does) {
					q.conn.Close()
				}
			}
			return false
		})},
	{Name: "violation-fails-job", About: "The job of a worker that sends an unknown type fails.",
		Kills: cases("violation.job-tried-again"),
		Hook: refused(protocol.RuleTypeKnown, func(b *bench, p *peer, _ *frame) bool {
			if p.job != nil {
				b.give(p, "job_complete_announce", "\xff", "")
			}
			return false
		})},
	{Name: "violation-drops-jobs", About: "The jobs of an application that sends an unknown type are dropped.",
		Kills: cases("violation.job-goes-on"),
		Hook: refused(protocol.RuleTypeKnown, func(b *bench, p *peer, _ *frame) bool {
			b.dropQueued(p, 1)
			return false
		})},
}
