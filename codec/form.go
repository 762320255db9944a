package codec

import "slices"

// Form names the rules about the form of a message, apart from the rules of its fields.
type Form struct {
	Any  []RuleID // rules for every message
	Body []RuleID // rules for messages with a body whose size is announced

	Missing  RuleID // too few fields
	Extra    RuleID // too many fields
	Trailing RuleID // a separator after the last field
	Spacing  RuleID // rule that consecutive separators violate; "": consecutive separators enclose an empty field
}

// FormRules returns the form rules that a message of the type can violate if the side sends it.
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
	bounded := len(fields) == 0 || last.Kind != Opaque // the last field cannot contain arbitrary bytes
	if slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Kind == Length }) {
		rules, bounded = append(rules, r.Body...), true // the line before the body is bounded
	}
	if slices.ContainsFunc(t.Fields, func(f Field) bool { return !f.Optional }) {
		rules = append(rules, r.Missing)
	}
	if bounded && len(t.Repeat) == 0 {
		rules = append(rules, r.Extra)
	}
	if t.End != "" || bounded && len(fields) > 0 && last.Width == 0 {
		rules = append(rules, r.Trailing, r.Spacing)
	}
	slices.Sort(rules)
	return slices.DeleteFunc(slices.Compact(rules), func(r RuleID) bool { return r == "" })
}
