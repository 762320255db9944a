package export

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"jobwire/codec"
	"jobwire/internal/version"
)

// maxToken is the length of the longest token in bytes. AFL++ ignores longer tokens.
const maxToken = 128

// Dictionary writes a dictionary for AFL++ and libFuzzer: what clients and workers send, according to the contract. A
// token is the beginning of a message up to its type, a magic, a separator, a fixed word, an allowed value or an
// example of a field, or a number at a limit. Tokens are at most 128 bytes long and differ from each other. Lines are
// sorted by name.
func Dictionary(w io.Writer, p *codec.Protocol) error {
	d := dictionary{known: map[string]bool{"": true}, lines: map[string]string{}}
	size := d.framing(&p.Framing)
	for _, t := range p.Types {
		if t.Sends(codec.Peer) {
			d.message(p, t, size)
		}
	}
	for _, word := range slices.Sorted(maps.Keys(p.Commands)) {
		d.add("word", word)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Tokens of %s for AFL++ (-x) and libFuzzer (-dict), written by\n# \"jobwire export dictionary\".\n# jobwire %s\n", p.Title, version.Get())
	for _, name := range slices.Sorted(maps.Keys(d.lines)) {
		fmt.Fprintf(&b, "%s=\"%s\"\n", name, d.lines[name])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// dictionary collects tokens.
type dictionary struct {
	known map[string]bool
	lines map[string]string // escaped tokens by name
}

// add adds a token whose name consists of its kind and its text, or its bytes in hexadecimal if it has no letters or
// digits.
func (d *dictionary) add(kind, token string) {
	text := strings.Trim(normalize(token), "_")
	if text == "" {
		text = hex.EncodeToString([]byte(token))
	}
	d.addNamed(kind+"_"+text, token)
}

// addNamed adds a token, unless it is empty, too long or known.
func (d *dictionary) addNamed(name, token string) {
	if len(token) > maxToken || d.known[token] {
		return
	}
	d.known[token] = true
	name = strings.Join(strings.FieldsFunc(normalize(name), func(r rune) bool { return r == '_' }), "_")
	name = name[:min(len(name), 40)]
	unique := name
	for n := 2; d.lines[unique] != ""; n++ {
		unique = fmt.Sprintf("%s_%d", name, n)
	}
	d.lines[unique] = escapeToken(token)
}

// escapeToken writes a token as it is between the quotes of a dictionary.
func escapeToken(token string) string {
	var b strings.Builder
	for _, c := range []byte(token) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// framing adds the tokens that do not belong to one message type. It returns the field for the size of a binary
// message, or nil if there are no binary messages.
func (d *dictionary) framing(f *codec.Framing) (size *codec.Field) {
	if h := f.Header; h != nil {
		d.add("magic", h.Magic[codec.Peer])
		d.add("magic", h.Magic[codec.Server])
		size = h.Fields[len(h.Fields)-1]
		d.limits(size)
		d.around(size, codec.DefaultMaxData, h.MaxRepeat)
	}
	if l := f.Lines; l != nil {
		d.add("separator", l.End)
		d.around(nil, l.Max[codec.Peer], l.Scan[codec.Peer], l.Body[codec.Peer].Max)
	}
	if v := f.Values; v != nil {
		for _, kind := range slices.Sorted(maps.Keys(v.Kinds)) {
			d.add("kind", string([]byte{kind}))
		}
		for _, word := range slices.Sorted(maps.Keys(v.Effects)) {
			d.add("word", strings.ToUpper(word))
		}
		d.around(nil, v.MaxLine, v.MaxDepth, v.MaxBulk, v.MaxCount, v.MaxElements)
	}
	return size
}

// message adds the tokens of a message type. size is the field for the size of a binary message.
func (d *dictionary) message(p *codec.Protocol, t *codec.Type, size *codec.Field) {
	head, binary := beginning(p, t)
	d.addNamed("type_"+t.Name, head)
	if !binary {
		size = nil
	}
	for _, s := range []string{t.Sep, t.End, t.Stop} {
		d.add("separator", s)
	}
	for _, f := range slices.Concat(t.Fields, t.Repeat) {
		d.add("word", f.Prefix)
		d.add("separator", f.Term)
		for _, v := range slices.Concat(f.Values, f.Examples) {
			d.add("value_"+f.Name, v)
		}
		d.limits(&f)
		d.around(size, f.Max)
	}
}

// beginning returns the bytes of a message up to its type, with the separator after it, and whether the type is a
// binary number. Both are zero if the message has no type on the wire.
func beginning(p *codec.Protocol, t *codec.Type) (head string, binary bool) {
	raw, err := p.NewSession(codec.Options{}).Append(nil, codec.Peer, t.Sample())
	if err != nil {
		return "", false
	}
	var f codec.Frame
	if _, err := p.NewSession(codec.Options{}).Decode(codec.Peer, raw, &f); err != nil {
		return "", false
	}
	for _, s := range f.Spans[:f.Head] {
		if s.Field.Kind == codec.Code {
			head, binary = string(raw[:s.Next]), s.Field.Width > 0
		}
	}
	return head, binary
}

// limits adds the smallest and the largest legal number of a field, and the numbers next to them.
func (d *dictionary) limits(f *codec.Field) {
	if f.Kind < codec.Number || f.Kind == codec.Literal || f.Kind == codec.Code {
		return
	}
	lo := new(big.Int).SetUint64(f.Lo)
	hi := new(big.Int).SetUint64(cmp.Or(f.Hi, math.MaxUint64>>(64-8*cmp.Or(f.Width, 8))))
	if f.Kind == codec.Signed {
		lo, hi = big.NewInt(math.MinInt64), big.NewInt(math.MaxInt64)
	}
	one := big.NewInt(1)
	for _, n := range []*big.Int{lo, new(big.Int).Sub(lo, one), hi, new(big.Int).Add(hi, one)} {
		d.number(f, n)
	}
}

// around adds limits of sizes, and the numbers next to them, in the form of the field, or in decimal if the field is
// nil. A limit of 0 means that there is none.
func (d *dictionary) around(f *codec.Field, limits ...int) {
	for _, limit := range limits {
		for n := limit - 1; limit > 0 && limit < math.MaxInt && n <= limit+1; n++ {
			d.number(f, big.NewInt(int64(n)))
		}
	}
}

// number adds a number: big-endian if the field has a width, unless the number does not fit, and otherwise in decimal.
func (d *dictionary) number(f *codec.Field, n *big.Int) {
	name := "number_" + strings.Replace(n.String(), "-", "minus_", 1)
	if f == nil || f.Width == 0 {
		d.addNamed(name, n.String())
	} else if n.Sign() >= 0 && n.BitLen() <= 8*f.Width {
		b := binary.BigEndian.AppendUint64(nil, n.Uint64())
		d.addNamed(fmt.Sprintf("%s_uint%d", name, 8*f.Width), string(b[8-f.Width:]))
	}
}
