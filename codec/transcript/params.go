package transcript

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"jobwire/codec"
)

// Param is the value that a parameter of a case (@for) has in one instance of the case.
type Param struct {
	Name  string
	Label string // the value in the name of the instance: a number, or a word that names the bytes
	value string // the value as written in a step
}

const (
	maxInstances = 1000    // limits the instances of one case
	maxParams    = 16      // limits the parameters of one case
	maxExpanded  = 4 << 20 // limits the size of the lines that setups, parameters and repetitions add to one source
	maxBits      = 128     // limits numbers in the values of parameters
)

// sourceLine is one line of a source.
type sourceLine struct {
	number int // from 1
	text   string
	setup  string // the setup that contains the line
	sample Sample
}

// section is the lines of one script: those before the first @case, or a @case line and the lines up to the
// next one.
type section []sourceLine

func (s section) text() string {
	var all []string
	for _, l := range s {
		all = append(all, l.text)
	}
	return strings.Join(all, "\n")
}

// sections splits the lines of a source at the @case lines.
func sections(lines []sourceLine) []section {
	var all []section
	from := 0
	for i, l := range lines {
		if key, _, ok := metaLine(l.text); ok && key == "case" && i > 0 {
			all = append(all, lines[from:i])
			from = i
		}
	}
	return append(all, lines[from:])
}

// metaLine splits an @-line into its key and its value.
func metaLine(text string) (key, value string, ok bool) {
	s, _ := trim(text)
	if s == "" || s[0] != '@' {
		return "", "", false
	}
	key, value, _ = strings.Cut(strings.ReplaceAll(s[1:], "\t", " "), " ")
	return key, strings.TrimSpace(value), true
}

// instance is a section with the values of its parameters.
type instance struct {
	params []Param
	lines  section
}

// instances returns the instances of the section. For one or two parameters it returns one instance for each
// combination of values; for more parameters it returns enough instances that each pair of values occurs.
func (ps *parser) instances(s section) ([]instance, *Error) {
	var domains [][]Param
	var rest section
	for _, l := range s {
		key, value, ok := metaLine(l.text)
		if !ok || key != "for" {
			rest = append(rest, l)
			continue
		}
		pos := position{ps.pos.file, l.number, 1}
		domain, err := ps.domain(pos, value)
		if err != nil {
			return nil, err
		}
		for _, other := range domains {
			if other[0].Name == domain[0].Name {
				return nil, pos.errorf("expected a different name for each @for, got %s twice", domain[0].Name)
			}
		}
		for _, other := range domains {
			if n := len(domain) * len(other); n > maxInstances {
				return nil, pos.errorf("expected at most %d combinations of values, got %d", maxInstances, n)
			}
		}
		if domains = append(domains, domain); len(domains) > maxParams {
			return nil, pos.errorf("expected at most %d parameters", maxParams)
		}
	}
	var all []instance
	for _, params := range combinations(domains) {
		lines, err := ps.expand(rest, params, len(domains) > 0)
		if err != nil {
			return nil, err
		}
		all = append(all, instance{params, lines})
	}
	if len(all) > maxInstances {
		return nil, position{ps.pos.file, s[0].number, 1}.errorf("expected at most %d combinations of values, got %d",
			maxInstances, len(all))
	}
	return all, nil
}

var (
	reference = regexp.MustCompile(`\{([a-z][a-z0-9]*)([+-][0-9]+)?\}`)
	eachLine  = regexp.MustCompile(`^(\s*)each ([a-z][a-z0-9]*) in (\S+)\.\.(\S+):\s*$`)
	sizeLine  = regexp.MustCompile(`^\s*measure ([a-z][a-z0-9-]*) at ([0-9]{1,9}):\s*$`)
)

// expand replaces the references to parameters, repeats the lines below "each", and marks those below "measure". If
// strict is true, a reference to an unknown parameter is an error.
func (ps *parser) expand(lines section, params []Param, strict bool) (section, *Error) {
	out := make(section, 0, len(lines))
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		text, err := ps.substitute(l, params, strict)
		if err != nil {
			return nil, err
		}
		pos := position{ps.pos.file, l.number, 1}
		if err := ps.grow(pos, text); err != nil {
			return nil, err
		}
		var each, measure []string
		switch word, _, _ := strings.Cut(strings.TrimSpace(text), " "); word { // the expressions are slow on long lines
		case "each":
			each = eachLine.FindStringSubmatch(text)
		case "measure":
			measure = sizeLine.FindStringSubmatch(text)
		}
		if each == nil && measure == nil {
			out = append(out, sourceLine{number: l.number, text: text})
			continue
		}
		body := i + 1
		for body < len(lines) && (strings.TrimSpace(lines[body].text) == "" || indent(lines[body].text) > indent(text)) {
			body++
		}
		if body == i+1 {
			return nil, pos.errorf("expected indented lines after %q, got none", strings.TrimSpace(text))
		}
		if each != nil {
			err = ps.repeat(&out, lines[i+1:body], each, pos, params)
		} else {
			err = ps.mark(&out, lines[i+1:body], measure, params, strict)
		}
		if err != nil {
			return nil, err
		}
		i = body - 1
	}
	return out, nil
}

// repeat appends the lines below a line that [eachLine] matches.
func (ps *parser) repeat(out *section, lines section, each []string, pos position, params []Param) *Error {
	from, err := ps.number(pos, each[3])
	if err != nil {
		return err
	}
	to, err := ps.number(pos, each[4])
	if err != nil {
		return err
	}
	if new(big.Int).Sub(to, from).Cmp(big.NewInt(maxInstances)) > 0 {
		return pos.errorf("expected at most %d repetitions", maxInstances)
	}
	for k := from; k.Cmp(to) <= 0; k = plus(k, 1) {
		once, err := ps.expand(lines, append(slices.Clip(params), numbered(each[2], k)), true)
		if err != nil {
			return err
		}
		*out = append(*out, once...)
	}
	return nil
}

// mark appends the lines below a line that [sizeLine] matches, as a sample.
func (ps *parser) mark(out *section, lines section, measure []string, params []Param, strict bool) *Error {
	once, err := ps.expand(lines, params, strict)
	size, _ := strconv.Atoi(measure[2])
	ps.samples++
	for k := range once {
		once[k].sample = Sample{Number: ps.samples, Name: measure[1], Size: size}
	}
	*out = append(*out, once...)
	return err
}

// size returns the size of a line in memory.
func (l *sourceLine) size() int { return len(l.text) + int(unsafe.Sizeof(*l)) }

// grow counts a line that results from setups, parameters and repetitions. It returns an error if there are too many.
func (ps *parser) grow(pos position, text string) *Error {
	if ps.expanded += (&sourceLine{text: text}).size(); ps.expanded > maxExpanded {
		return pos.errorf("setups, @for and each make the file too long: expected at most %d MiB of additional lines",
			maxExpanded>>20)
	}
	return nil
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// substitute replaces the references to parameters in a line.
func (ps *parser) substitute(l sourceLine, params []Param, strict bool) (string, *Error) {
	if len(params) == 0 || !strings.Contains(l.text, "{") {
		return l.text, nil
	}
	var out strings.Builder
	rest := l.text
	for {
		end := strings.IndexByte(rest, '}')
		begin := strings.LastIndexByte(rest[:max(end, 0)], '{')
		if end < 0 {
			out.WriteString(rest)
			return out.String(), nil
		}
		if begin < 0 {
			out.WriteString(rest[:end+1])
		} else {
			value, err := ps.dereference(l.number, rest[begin:end+1], params, strict)
			if err != nil {
				return "", err
			}
			out.WriteString(rest[:begin])
			out.WriteString(value)
		}
		rest = rest[end+1:]
	}
}

// dereference returns the value of a reference in braces. It returns other text in braces, and a reference to an
// unknown parameter if strict is false, unchanged.
func (ps *parser) dereference(line int, ref string, params []Param, strict bool) (string, *Error) {
	if i := slices.IndexFunc(params, named(ref[1:len(ref)-1])); i >= 0 {
		return params[i].value, nil
	}
	m := reference.FindStringSubmatch(ref)
	if m == nil {
		return ref, nil
	}
	pos := position{ps.pos.file, line, 1}
	i := slices.IndexFunc(params, named(m[1]))
	switch {
	case i < 0 && strict:
		return "", pos.errorf("expected the name of a parameter, got %s", ref)
	case i < 0:
		return ref, nil
	}
	n, ok := new(big.Int).SetString(params[i].value, 10)
	if !ok {
		return "", pos.errorf("expected a parameter that is a number, got %s", ref)
	}
	k, _ := new(big.Int).SetString(m[2], 10)
	return n.Add(n, k).String(), nil
}

// combinations returns the combinations of parameter values to test.
func combinations(domains [][]Param) [][]Param {
	if len(domains) > 2 {
		return pairwise(domains)
	}
	all := [][]Param{nil}
	for _, d := range domains {
		var more [][]Param
		for _, c := range all {
			for _, p := range d {
				more = append(more, append(slices.Clip(c), p))
			}
		}
		all = more
	}
	return all
}

// pairwise returns combinations that contain each pair of values of two parameters. It builds one combination
// at a time, from the values that add the most pairs.
func pairwise(domains [][]Param) [][]Param {
	type pair struct{ a, x, b, y int } // value x of parameter a with value y of parameter b
	open := map[pair]bool{}
	var order []pair
	for a := range domains {
		for b := a + 1; b < len(domains); b++ {
			for x := range domains[a] {
				for y := range domains[b] {
					open[pair{a, x, b, y}] = true
					order = append(order, pair{a, x, b, y})
				}
			}
		}
	}
	var all [][]Param
	for _, first := range order {
		if !open[first] {
			continue
		}
		chosen := make([]int, len(domains))
		for d := range chosen {
			chosen[d] = -1
		}
		chosen[first.a], chosen[first.b] = first.x, first.y
		gain := func(d, v int) (n int) {
			for e, w := range chosen {
				if w >= 0 && e != d && open[pair{min(d, e), pick(d < e, v, w), max(d, e), pick(d < e, w, v)}] {
					n++
				}
			}
			return n
		}
		for d := range chosen {
			if chosen[d] >= 0 {
				continue
			}
			best := 0
			for v := range domains[d] {
				if gain(d, v) > gain(d, best) {
					best = v
				}
			}
			chosen[d] = best
		}
		params := make([]Param, len(domains))
		for a, x := range chosen {
			params[a] = domains[a][x]
			for b := a + 1; b < len(chosen); b++ {
				delete(open, pair{a, x, b, chosen[b]})
			}
		}
		all = append(all, params)
	}
	return all
}

func pick(first bool, a, b int) int {
	if first {
		return a
	}
	return b
}

// domain reads what follows @for: a name, "in" and the values.
func (ps *parser) domain(pos position, s string) ([]Param, *Error) {
	name, values, ok := strings.Cut(s, " in ")
	if name = strings.TrimSpace(name); !ok || !reference.MatchString("{"+name+"}") {
		return nil, pos.errorf("expected a name in small letters and digits, \"in\" and values after @for, as in @for n in 1 2 3")
	}
	var all []Param
	list := items(values)
	for i, item := range list {
		if item == "but" {
			return ps.without(pos, all, list[i+1:])
		}
		some, err := ps.values(pos, name, item)
		if err != nil {
			return nil, err
		}
		for _, p := range some {
			if !slices.ContainsFunc(all, func(q Param) bool { return q.Label == p.Label }) {
				all = append(all, p)
			}
		}
	}
	if len(all) == 0 {
		return nil, pos.errorf("expected at least one value for %s, got none", name)
	}
	return all, nil
}

// without returns the values whose labels are not among those given, which follow "but".
func (ps *parser) without(pos position, all []Param, labels []string) ([]Param, *Error) {
	for _, label := range labels {
		i := slices.IndexFunc(all, func(p Param) bool { return p.Label == label })
		if i < 0 || len(all) == 1 {
			return nil, pos.errorf("expected the label of one of several values after \"but\", got %s", label)
		}
		all = slices.Delete(all, i, i+1)
	}
	return all, nil
}

// items splits values at spaces outside quoted text and parentheses.
func items(s string) []string {
	var all []string
	from, depth := -1, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isBlank(c) && depth == 0:
			if from >= 0 {
				all = append(all, s[from:i])
			}
			from = -1
			continue
		case c == '"':
			if n := quotedEnd(s[i:]); n > 0 {
				if from < 0 {
					from = i
				}
				i += n - 1
				continue
			}
		case c == '(':
			depth++
		case c == ')':
			depth--
		}
		if from < 0 {
			from = i
		}
	}
	if from >= 0 {
		all = append(all, s[from:])
	}
	return all
}

var (
	call       = regexp.MustCompile(`^([a-z]+)(?:\((.*)\))?$`)
	namedValue = regexp.MustCompile(`^([A-Za-z0-9.+-]+)=(.*)$`)
	plain      = regexp.MustCompile(`^[A-Za-z0-9.+_-]+$`)
)

// values returns the parameter values that an item specifies.
func (ps *parser) values(pos position, name, item string) ([]Param, *Error) {
	if m := namedValue.FindStringSubmatch(item); m != nil {
		return []Param{{name, m[1], m[2]}}, nil
	}
	if a, b, ok := strings.Cut(item, ".."); ok {
		return ps.ranged(pos, name, a, b, through)
	}
	m := call.FindStringSubmatch(item)
	if m == nil || m[2] == "" && m[1] != "bodies" {
		if !plain.MatchString(item) {
			if n, err := ps.number(pos, item); err == nil {
				return []Param{numbered(name, n)}, nil
			}
			return nil, pos.errorf("expected a word, a number or a label before quoted text, as in empty=\"\", got %s", item)
		}
		return []Param{{name, item, item}}, nil
	}
	a, b, _ := strings.Cut(m[2], ",")
	switch m[1] {
	case "bounds":
		return ps.ranged(pos, name, a, b, func(from, to *big.Int) []*big.Int {
			return []*big.Int{from, plus(from, 1), plus(to, -1), to}
		})
	case "powers":
		return ps.ranged(pos, name, a, b, powers)
	case "unused":
		return ps.ranged(pos, name, a, b, func(from, to *big.Int) []*big.Int {
			return slices.DeleteFunc(through(from, to), func(n *big.Int) bool {
				return slices.ContainsFunc(ps.proto.Types, func(t *codec.Type) bool { return n.Cmp(big.NewInt(int64(t.Code))) == 0 })
			})
		})
	case "bodies":
		return bodies(name), nil
	case "joined", "spaced":
		return separated(name, m[2], m[1] == "joined"), nil
	case "chars", "illegal", "notfirst":
		f, err := ps.fieldNamed(pos, m[2])
		if err != nil {
			return nil, err
		}
		return characters(name, f, m[1]), nil
	case "max":
		n, err := ps.number(pos, item)
		if err != nil {
			return nil, err
		}
		return []Param{numbered(name, n)}, nil
	}
	return nil, pos.errorf("unknown values %q: expected words, A..B, bounds(A,B), powers(A,B), unused(A,B), "+
		"chars(TYPE.FIELD), illegal(TYPE.FIELD), notfirst(TYPE.FIELD), max(TYPE.FIELD), joined(LINE), spaced(LINE) or bodies",
		item)
}

// whiteSpace is what may stand where a line needs one space.
var whiteSpace = []Param{{Label: "two", value: "  "}, {Label: "tab", value: "\t"}, {Label: "vertical-tab", value: "\v"},
	{Label: "form-feed", value: "\f"}, {Label: "no-break", value: "\xa0"}}

// separated returns the line with another separator in the place of one space: with none if joined is true, and else
// with two kinds of white space for each space. The kinds differ between the spaces and between commands, so that
// the lines of several commands have each kind at each place.
func separated(name, line string, joined bool) (all []Param) {
	words := strings.Fields(line)
	first := 0
	for _, c := range []byte(words[0]) {
		first += int(c)
	}
	for k := 1; k < len(words); k++ {
		before, after := strings.Join(words[:k], " "), strings.Join(words[k:], " ")
		add := func(p Param) {
			value := appendQuoted(nil, []byte(before+p.value+after), maxExpanded)
			all = append(all, Param{name, fmt.Sprintf("%s-%d%s", words[0], k, p.Label), string(value)})
		}
		if joined {
			add(Param{})
			continue
		}
		for n := range 2 {
			p := whiteSpace[(first+k+n)%len(whiteSpace)]
			p.Label = "-" + p.Label
			add(p)
		}
	}
	return all
}

// ranged returns the numbers that choose selects between two bounds, in ascending order.
func (ps *parser) ranged(pos position, name, a, b string, choose func(from, to *big.Int) []*big.Int) ([]Param, *Error) {
	from, err := ps.number(pos, a)
	if err != nil {
		return nil, err
	}
	to, err := ps.number(pos, b)
	if err != nil {
		return nil, err
	}
	numbers := choose(from, to)
	if len(numbers) > maxInstances {
		return nil, pos.errorf("expected at most %d values, got more", maxInstances)
	}
	slices.SortFunc(numbers, (*big.Int).Cmp)
	var all []Param
	for _, n := range numbers {
		if n.Cmp(from) >= 0 && n.Cmp(to) <= 0 {
			all = append(all, numbered(name, n))
		}
	}
	return all, nil
}

func plus(n *big.Int, k int64) *big.Int { return new(big.Int).Add(n, big.NewInt(k)) }

func numbered(name string, n *big.Int) Param { return Param{name, n.String(), n.String()} }

// through returns all numbers between two bounds, up to one more than the maximum number of instances.
func through(from, to *big.Int) []*big.Int {
	var all []*big.Int
	for n := from; n.Cmp(to) <= 0 && len(all) <= maxInstances; n = plus(n, 1) {
		all = append(all, n)
	}
	return all
}

// powers returns both bounds, the powers of two between them, and the numbers next to these powers.
func powers(from, to *big.Int) []*big.Int {
	all := []*big.Int{from, to}
	for p := big.NewInt(1); p.Cmp(plus(to, 1)) <= 0; p = new(big.Int).Lsh(p, 1) {
		all = append(all, plus(p, -1), p, plus(p, 1))
	}
	return all
}

var operand = regexp.MustCompile(`^(?:([0-9]+)|max\(([^)]*)\))([+-][0-9]+)?$`)

// number parses a number or max(TYPE.FIELD), which is the largest value or length of a field, and an optional
// addend.
func (ps *parser) number(pos position, s string) (*big.Int, *Error) {
	m := operand.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return nil, pos.errorf("expected a number or max(TYPE.FIELD), got %q", s)
	}
	n := new(big.Int)
	if m[1] != "" {
		n.SetString(m[1], 10)
	} else {
		f, err := ps.fieldNamed(pos, m[2])
		if err != nil {
			return nil, err
		}
		switch {
		case f.Kind <= codec.Text && f.Max > 0:
			n.SetInt64(int64(f.Max))
		case f.Kind <= codec.Text:
			return nil, pos.errorf("%s has no limit", m[2])
		case f.Hi > 0:
			n.SetUint64(f.Hi)
		case f.Width > 0:
			n.Sub(new(big.Int).Lsh(big.NewInt(1), uint(8*f.Width)), big.NewInt(1))
		default:
			n.SetUint64(1<<64 - 1)
		}
	}
	if m[3] != "" {
		k, _ := new(big.Int).SetString(m[3], 10)
		n.Add(n, k)
	}
	if n.BitLen() > maxBits {
		return nil, pos.errorf("expected a number of at most %d bits, got %.20s...", maxBits, s)
	}
	return n, nil
}

// fieldNamed returns the field specified as TYPE.FIELD. The name of the field is written as in
// [codec.Type.Signature].
func (ps *parser) fieldNamed(pos position, s string) (*codec.Field, *Error) {
	name, field, _ := strings.Cut(s, ".")
	t := ps.proto.TypeNamed(name)
	if t == nil {
		return nil, pos.errorf("expected a message type, got %q%s", name, nearest(name, typeNames(ps.proto)))
	}
	var known []string
	for i := 0; ; i++ {
		f := t.FieldAt(i)
		if f == nil || i > 64 {
			return nil, pos.errorf("%s has no field %q%s", name, field, nearest(field, known))
		}
		is := strings.ReplaceAll(strings.ToLower(f.Name), " ", "-")
		if is == field {
			return f, nil
		}
		known = append(known, is)
	}
}

// characters returns the bytes that may begin a text, that are not allowed in it, or that are allowed except
// at its beginning, as selected by which.
func characters(name string, f *codec.Field, which string) []Param {
	var all []Param
	for c := range 256 {
		b := string([]byte{byte(c)})
		legal, begins := strings.Contains(f.Chars, b), !strings.Contains(f.NotFirst, b)
		if which == "chars" && legal && begins || which == "illegal" && !legal || which == "notfirst" && legal && !begins {
			all = append(all, Param{name, fmt.Sprintf("x%02x", c), quoted(b)})
		}
	}
	return all
}

// quoted returns a value in quotes, so that it can be used among raw bytes.
func quoted(value string) string {
	s := Quote(value)
	if s[0] != '"' {
		s = `"` + s + `"`
	}
	return s
}

// bodies returns job bodies with contents that a server must pass on unchanged.
func bodies(name string) []Param {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	var all []Param
	for _, b := range []struct{ label, value string }{
		{"empty", ""},
		{"space", " "},
		{"nul", "\x00"},
		{"nuls", "a\x00b\x00"},
		{"lf", "\n"},
		{"crlf", "\r\n"},
		{"crlf-inside", "a\r\nb"},
		{"dot", ".\r\n"},
		{"every-byte", string(every)},
		{"high-bytes", "\xff\xfe\x80"},
		{"multibyte", "\u00e9\u20ac\U0001f600"},
		{"cut-multibyte", "\xe2\x82"},
	} {
		all = append(all, Param{name, b.label, quoted(b.value)})
	}
	return all
}
