package codec

import "slices"

// Form names the rules that the form of a message can violate, apart from those of its fields.
type Form struct {
	Any  []RuleID // every message
	Body []RuleID // those with a body whose size they announce

	Missing  RuleID // too few fields
	Surplus  RuleID // too many
	Trailing RuleID // a separator after the last field
	Spacing  RuleID // if set, separators in a row, which otherwise enclose an empty field
}

// FormRules returns the rules that the form of a message of the type can violate if the side sends it.
func (t *Type) FormRules(from Side) []RuleID {
	r := t.Form[from]
	if r == nil {
		return nil
	}
	rules := slices.Clone(r.Any)
	fields := append(t.Fields[:len(t.Fields):len(t.Fields)], t.Repeat...)
	var last Field
	if len(fields) > 0 {
		last = fields[len(fields)-1]
	}
	bounded := len(fields) == 0 || last.Kind != Opaque // it does not end in any bytes
	if slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Kind == Length }) {
		rules, bounded = append(rules, r.Body...), true // its line does not
	}
	if slices.ContainsFunc(t.Fields, func(f Field) bool { return !f.Optional }) {
		rules = append(rules, r.Missing)
	}
	if bounded && len(t.Repeat) == 0 {
		rules = append(rules, r.Surplus)
	}
	if t.End != "" || bounded && len(fields) > 0 && last.Width == 0 {
		rules = append(rules, r.Trailing, r.Spacing)
	}
	slices.Sort(rules)
	return slices.DeleteFunc(slices.Compact(rules), func(r RuleID) bool { return r == "" })
}
