package gearman

import "jobwire/codec"

var recognition = codec.Recognition{
	Begins:    begins,
	Next:      framing.Header.Next,
	Pairing:   []codec.RuleID{RuleAdminAsked, RuleAdminReply, RuleAdminPending, RuleAdminCommand},
	Dependent: []codec.RuleID{RuleAdminArgs},
}

// begins recognizes a packet or an administrative command. It recognizes no reply to a command on a new connection,
// because such replies look like those of other protocols.
func begins(from codec.Side, b, first []byte, resumed bool) codec.Match {
	switch {
	case b[0] == 0:
		return framing.Header.Begins(from, b, first, resumed)
	case from == codec.Server && !resumed:
		return codec.NoMatch
	}
	return codec.BeginsLine(types, from, b, "\n")
}
