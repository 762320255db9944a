package codec

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// escapes maps the escape characters of YAML without digits to their values (YAML 1.2.2, "5.7. Escaped
// Characters").
var escapes = map[byte]string{'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f",
	'r': "\r", 'e': "\x1b",
	' ': " ", '"': `"`, '/': "/", '\\': `\`, 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029"}

// scalar returns the value of a YAML scalar. It decodes the escapes if the scalar is quoted.
func (f *Frame) scalar(s *Span) []byte {
	v := f.Raw[s.Off:s.End:s.End]
	switch quote := f.Raw[max(0, s.Off-1)]; {
	case quote == '\'' && bytes.IndexByte(v, quote) >= 0:
		return bytes.ReplaceAll(v, []byte("''"), []byte("'"))
	case quote != '"' || bytes.IndexByte(v, '\\') < 0:
		return v
	}
	out := make([]byte, 0, len(v))
	for k := bytes.IndexByte(v, '\\'); k >= 0 && k+1 < len(v); k = bytes.IndexByte(v, '\\') {
		out, v = append(out, v[:k]...), v[k+1:]
		n := min(len(v), map[byte]int{'x': 3, 'u': 5, 'U': 9}[v[0]])
		if n > 0 {
			c, _ := strconv.ParseUint(string(v[1:n]), 16, 32)
			out = utf8.AppendRune(out, rune(c))
		} else {
			n, out = 1, append(out, escapes[v[0]]...)
		}
		v = v[n:]
	}
	return append(out, v...)
}
