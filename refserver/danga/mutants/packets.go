package mutants

import (
	"bytes"
	"slices"
	"strings"

	"jobwire/codec"
	protocol "jobwire/codec/danga"
	"jobwire/refserver/inject"
)

// packets are faults of the header.
var packets = []row{
	{Name: "zero-magic-is-none", About: "The server does not treat four zero bytes as a magic.",
		Kills: "magic.zeros", Edit: magic(func(m []byte) []byte {
			if bytes.Equal(m, []byte{0, 0, 0, 0}) {
				return []byte(protocol.DefaultMagic)
			}
			return m
		})},
	{Name: "magic-of-seven-bits", About: "The server clears the high bit of each byte of the magic in its replies.",
		Kills: "magic.any-bytes magic.each-its-own magic.values", Edit: magic(func(m []byte) []byte {
			m = slices.Clone(m)
			for i := range m {
				m[i] &= 0x7f
			}
			return m
		})},
	{Name: "one-magic", About: "The server uses the magic of the first connection for all connections.",
		Kills: "magic.zeros magic.any-bytes magic.each-its-own magic.values", Edit: func(s *inject.Server) {
			var first []byte
			magic(func(m []byte) []byte {
				if first == nil {
					first = slices.Clone(m)
				}
				return first
			})(s)
		}},
	{Name: "magic-not-compared", About: "The server accepts packets whose magic differs from that of the first packet.",
		Kills: "magic.changes magic.changes-in-a-byte", Codec: codec.Options{Waive: []codec.RuleID{protocol.RuleMagic}}},
	{Name: "magic-of-three-bytes", About: "The server does not compare the last byte of the magic.",
		Kills: "magic.changes-in-a-byte", Edit: inject.Decode(func(s codec.Session, p []byte, f *codec.Frame) (int, error) {
			if len(p) >= 4 && string(p[:3]) == protocol.DefaultMagic[:3] && p[3] != protocol.DefaultMagic[3] {
				p = append([]byte(protocol.DefaultMagic), p[4:]...)
			}
			return s.Decode(codec.Peer, p, f)
		})},
	{Name: "unknown-type-answered", About: "The server replies to an unknown packet type with a noop.",
		Kills: "type.beyond type.unused violation.others-unharmed violation.job-tried-again violation.job-goes-on", Edit: inject.Answer(inject.Illegal, unknownType, "noop")},
	{Name: "answers-returned", About: "The server echoes packets that only applications receive.",
		Kills: "direction.for-applications", Edit: returned(protocol.Application)},
	{Name: "noop-returned", About: "The server echoes packets that only workers receive.",
		Kills: "direction.for-workers", Edit: returned(protocol.Worker)},
	{Name: "creator-does-not-work", About: "The server assigns no jobs to a connection that has created a job.",
		Kills: "direction.both-roles", Edit: inject.Answer("job_assign_req", func(m *message) bool { return len(m.Peer.Created) > 0 }, "noop")},
	{Name: "little-endian-length", About: "The server sends lengths above 255 in little-endian order.",
		Kills: "length.two-bytes create.args-large complete.result-large create.args-length create.args complete.result-streamed complete.result-asked complete.result-length connect.long-name",
		Edit: inject.Out("job_assign_res job_complete_res", func(m *message) bool { return len(m.Frame.Raw) > 9+255 }, func(m *message) {
			m.Raw = slices.Clone(m.Frame.Raw)
			slices.Reverse(m.Raw[5:9])
		})},
	{Name: "magic-in-args-stripped", About: "The server removes the magic from the start of args.",
		Kills: "length.data-like-packets",
		Edit:  inject.Rewrite("job_assign_res", 1, nil, func(v string) string { return strings.TrimPrefix(v, protocol.DefaultMagic) })},
	{Name: "huge-length-blocks", About: "The server serves no connection after a packet with a length above the limit.",
		Kills: "length.highest", Edit: blockedBy(protocol.RuleSizeCap)},
	{Name: "request-in-sleep-unanswered", About: "The server does not reply to a job_assign_req that immediately follows worker_sleep.",
		Kills: "flow.worst-case-elapsed length.zero sleep.not-for-others sleep.by-itself",
		Edit:  inject.Ignore("job_assign_req", func(m *message) bool { return m.Peer.Last() == "worker_sleep" && m.Peer.Woken == 0 })},
	{Name: "thousands-of-names-block", About: "The server serves no connection after a worker_connect with too many names.",
		Kills: "connect.thousands", Edit: blockedBy(protocol.RuleNamesCap)},
}

// magic changes the magic of what the server sends.
func magic(to func(m []byte) []byte) inject.Edit {
	return inject.Out("*", nil, func(m *message) {
		m.Raw = append(slices.Clone(to(m.Frame.Raw[:4])), m.Frame.Raw[4:]...)
	})
}

// returned echoes packets that only a role receives.
func returned(to codec.Role) inject.Edit {
	return inject.On(inject.Illegal, func(m *message) bool {
		return m.Err.Rule == protocol.RuleTypeDirection && m.Frame.Type.Res == to
	}, func(m *message) {
		m.Drop()
		m.Peer.SendRaw(m.Text())
	})
}

// blockedBy makes the server assign no jobs after a packet that breaks the rule.
func blockedBy(rule codec.RuleID) inject.Edit {
	return func(s *inject.Server) {
		full := false
		inject.On(inject.Illegal, func(m *message) bool { return m.Err.Rule == rule }, func(*message) { full = true })(s)
		inject.Ignore("job_assign_req", func(*message) bool { return full })(s)
	}
}

// unknownType is a condition on illegal packets.
func unknownType(m *message) bool { return m.Err.Rule == protocol.RuleTypeKnown }

// given gives the machine a packet in place of an illegal one of its type.
func given(rule codec.RuleID, typ string, args ...string) inject.Edit {
	return inject.On(inject.Illegal, inject.Broken(rule, typ), func(m *message) {
		m.Drop()
		m.Peer.Give(typ, args...)
	})
}

// wrongProgress sends progress to the applications that wait, in place of an illegal packet.
func wrongProgress(rule codec.RuleID, read func(m *message) []string) inject.Edit {
	return inject.On(inject.Illegal, func(m *message) bool {
		return m.Err.Rule == rule && m.Typed("job_status_announce") && m.Peer.Job != nil
	}, func(m *message) {
		m.Drop()
		toWaiting(m.Peer.Job, "job_status_res", read(m)...)
	})
}

// arguments are faults in the arguments of packets.
var arguments = []row{
	{Name: "incomplete-job-answered", About: "The server replies to a job_create_req with missing arguments as if it were complete.",
		Kills: "args.missing-name args.missing-key args.missing-type args.missing-at",
		Edit:  inject.Answer(inject.Illegal, inject.Broken(protocol.RuleArgsMissing, "job_create_req"), "job_create_res")},
	{Name: "empty-job-answered", About: "The server replies to a job_create_req without data as if it were complete.",
		Kills: "args.missing-all args.missing-at", Edit: inject.Answer(inject.Illegal, func(m *message) bool { return m.Typed("job_create_req") && len(m.Frame.Raw) <= 9 }, "job_create_res")},
	{Name: "short-progress-passed-on", About: "The server pads a job_status_announce that is too short with zeros.",
		Kills: "args.missing-of-status args.missing-of-status-at", Edit: wrongProgress(protocol.RuleArgsMissing, func(*message) []string { return []string{number(1), number(2), number(0)} })},
	{Name: "no-code-is-success", About: "The server treats a job_complete_announce without a result code as a success.",
		Kills: "args.missing-code", Edit: given(protocol.RuleArgsMissing, "job_complete_announce", "\x00", "")},
	{Name: "length-of-empty-types-ignored", About: "The server ignores the length of packets that have no arguments and reads their data as the next packet.",
		Kills: "args.surplus-packet", Edit: inject.On(inject.Illegal, inject.Broken(protocol.RuleArgsSurplus, "job_assign_req"), func(m *message) {
			m.Drop()
			m.Peer.Give("job_assign_req")
			m.Peer.Give("job_assign_req")
		})},
	{Name: "long-progress-read-from-its-end", About: "The server uses the last twelve bytes of a job_status_announce that is too long.",
		Kills: "args.surplus-of-status", Edit: wrongProgress(protocol.RuleArgsSurplus, func(m *message) []string { return progress(m.Text()[len(m.Frame.Raw)-12:]) })},
	{Name: "nul-handed-out", About: "The server includes a NUL after the last name in worker_connect in that name.",
		Kills: "args.nul-behind-names", Edit: func(s *inject.Server) {
			nul := false
			inject.On(inject.Illegal, inject.Broken(protocol.RuleArgsTrailing, "worker_connect"), func(m *message) {
				m.Drop()
				nul = true
				m.Peer.Give("worker_connect", strings.TrimRight(string(m.Frame.Raw[9:]), "\x00"))
			})(s)
			inject.Rewrite("job_assign_res", 1, func(*message) bool { return nul }, func(v string) string { return "\x00" + v })(s)
		}},
	{Name: "handle-with-nul-complete", About: "The server reports a job as complete if a NUL follows its handle.",
		Kills: "args.nul-behind-handle",
		Edit:  inject.Answer(inject.Illegal, inject.Broken(protocol.RuleArgsTrailing, "job_complete_req"), "job_complete_res", number(1), "\x00", "")},
	{Name: "nameless-job-for-all", About: "The server assigns a job without a name to any worker.",
		Kills: "name.empty", Edit: func(s *inject.Server) {
			waits := false
			inject.On(inject.Illegal, func(m *message) bool { return m.Err.Rule == protocol.RuleNameEmpty }, func(*message) { waits = true })(s)
			inject.Answer("job_assign_req", func(*message) bool { return waits }, "job_assign_res", "nameless", "")(s)
		}},
	{Name: "empty-handle-complete", About: "The server reports the job with an empty handle as complete.",
		Kills: "handle.empty", Edit: inject.Answer(inject.Illegal, inject.Broken(protocol.RuleHandleEmpty, "job_complete_req"), "job_complete_res", number(1), "\x00", "")},

	// Violations.
	{Name: "violation-closes-colleagues", About: "An unknown packet type closes the connections of all workers with the same names as the sender.",
		Kills: "violation.others-unharmed", Edit: inject.On(inject.Illegal, unknownType, func(m *message) {
			for _, p := range m.Peers {
				if slices.ContainsFunc(m.Peer.Can, p.Does) {
					p.Close()
				}
			}
		})},
	{Name: "violation-fails-job", About: "The job of a worker fails if the worker sends an unknown packet type.",
		Kills: "violation.job-tried-again", Edit: inject.On(inject.Illegal, func(m *message) bool { return unknownType(m) && m.Peer.Job != nil },
			func(m *message) { m.Peer.Give("job_complete_announce", "\xff", "") })},
	{Name: "violation-drops-jobs", About: "The server drops the jobs of an application that sends an unknown packet type.",
		Kills: "violation.job-goes-on", Edit: inject.On(inject.Illegal, unknownType, func(m *message) { dropQueued(m, async) })},
}
