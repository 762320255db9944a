package audit

import (
	"slices"

	"jobwire/audit/behavior"
	"jobwire/codec"
)

// Levels are the levels whose violations fail an audit or a stress test. nil stands for DefaultLevels.
type Levels []codec.Level

// DefaultLevels are the levels that bind clients and workers. A violation of a SHOULD or MAY rule is reported: a
// library may have many reasons to connect again in the middle of its work, for example. So are violations of
// interpretations, and behavior, about which the specification says nothing.
var DefaultLevels = Levels{codec.Must, codec.DeFacto, codec.Extension, codec.Resource}

// contain reports whether violations of rules of the level fail.
func (l Levels) contain(level codec.Level) bool {
	if l == nil {
		l = DefaultLevels
	}
	return slices.Contains(l, level)
}

// fail reports whether one of the violations fails.
func (l Levels) fail(broken []BrokenRule, found []behavior.Finding) bool {
	return len(found) > 0 && l.contain(codec.Behavioral) ||
		slices.ContainsFunc(broken, func(b BrokenRule) bool { return l.contain(b.Rule.Level) })
}
