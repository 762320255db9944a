package gen

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"jobwire/codec"
)

// pools are the names that peers know in common, by the label of their field,
// behind a slash where they are those of one row, or in the reply to one request. A
// value is taken only where its field allows it.
var pools = map[string][]string{
	"Function":      {"a", "b", "c"},
	"Job name":      {"a", "b", "c"},
	"Tube":          {"default", "a", "b"},
	"Unique ID":     {"", "u", "v"},
	"Duplicate key": {"", "u", "v"},
	"Client ID":     {"w", "x"},
	"Job handle":    {"H:test:1", "H:test:2", "H:test:3"},
	"Option":        {"exceptions"},
	"Mode":          {"graceful"},
	"Job ID":        {"1", "2", "3"},
	"ID":            {"1", "2", "3"},
	"Delay":         {"0", "0", "1"},
	"TTR":           {"0", "1", "60"},
	"Timeout":       {"0", "1", "1000"},
	"Bound":         {"0", "1", "2"},
	"Flags":         {"\x00"},
	"Event":         {"create", "start", "finish"},
	"Field":         {"status", "input", "output"},
	"Channel":       {"c", "channel:a"},
	"Key":           {"k", "l"},
	"Address":       {"127.0.0.1", "::1", "%lo"},

	// Of what these are made the rows do not tell.
	"Command":                 {"PING", "ECHO", "LPUSH", "LLEN", "get", "Set", "DEL"},
	"Double":                  {"0", "-1.5", "1e+30", "inf", "-inf", "nan", "1.7976931348623157e+308"},
	"Big number":              {"0", "-1", "3492890328409238509324850943850943825024385"},
	"stats-reply/Value":       {"", "0", "ready", "\"a b\"", "-1", "1.13", "4611686018427387904"},
	"OK/YAML":                 {"---\n\"a\": 'b'\n", "a: 1"},
	"list-tubes/YAML":         {"---\n- \"a\"", "- a\n- b\n"},
	"list-tubes-watched/YAML": {"---\n- 'default'\n"},
}

// closed are the labels under which nothing but names of the pool may stand.
var closed = map[string]bool{"Command": true, "Double": true, "Big number": true, "stats-reply/Value": true, "OK/YAML": true,
	"list-tubes/YAML": true, "list-tubes-watched/YAML": true}

// pool returns the pool of a field, and whether it is closed.
func (m *maker) pool(f *codec.Field) ([]string, bool) {
	if m.o.Asked != nil {
		if key := m.o.Asked.Name + "/" + f.Name; pools[key] != nil {
			return pools[key], closed[key]
		}
	}
	if key := m.row.Name + "/" + f.Name; pools[key] != nil {
		return pools[key], closed[key]
	}
	return pools[f.Name], closed[f.Name]
}

// wholes make the arguments of rows whose arguments depend on each other. Such rows
// have no word.
var wholes = map[string]func(m *maker) [][]byte{
	"inline":    inline,
	"aggregate": func(m *maker) [][]byte { return tokens(m, "*~|") },
	"push":      func(m *maker) [][]byte { return tokens(m, ">") },
}

// value makes a value of a field that is no framing.
func (m *maker) value(f *codec.Field) []byte {
	if known := m.o.Known[f.Name]; len(known) > 0 && m.r.IntN(4) > 0 {
		if v := known[m.r.IntN(len(known))]; m.fits(f, v) {
			return v
		}
	}
	if len(f.Values) > 0 {
		return []byte(pick(m, f.Values))
	}
	if pool, only := m.pool(f); pool != nil && (m.o.Tame || only || m.r.IntN(2) == 0) {
		if v := []byte(pick(m, pool)); m.fits(f, v) {
			return v
		}
	}
	switch f.Kind {
	case codec.Number:
		return strconv.AppendUint(nil, m.number(f.Lo, f.Hi), 10)
	case codec.Signed:
		return strconv.AppendInt(nil, m.signed(), 10)
	case codec.Uint:
		hi := f.Hi
		if hi == 0 {
			hi = math.MaxUint64 >> (64 - 8*f.Width)
		}
		n := m.number(f.Lo, hi)
		v := make([]byte, f.Width)
		for i := range v {
			v[f.Width-1-i] = byte(n >> (8 * i))
		}
		return v
	}
	for {
		if v := m.text(f); m.fits(f, v) {
			return v
		}
	}
}

func pick(m *maker, all []string) string { return all[m.r.IntN(len(all))] }

// number is one within bounds, mostly small or at one of them. A hi of 0 is none.
func (m *maker) number(lo, hi uint64) uint64 {
	if hi == 0 {
		hi = math.MaxUint64
	}
	n := uint64(m.r.IntN(4))
	if !m.o.Tame {
		switch m.r.IntN(4) {
		case 0:
			n = hi - lo - n
		case 1:
			n = uint64(1)<<m.r.IntN(64) - 1 + n%3
		}
	}
	if n > hi-lo {
		n %= hi - lo + 1
	}
	return lo + n
}

func (m *maker) signed() int64 {
	n := m.number(0, math.MaxInt64)
	if m.r.IntN(3) == 0 {
		return -int64(n)
	}
	if n == math.MaxInt64 && m.r.IntN(2) == 0 {
		return math.MinInt64
	}
	return int64(n)
}

// text makes bytes of a length and of kinds that find bounds.
func (m *maker) text(f *codec.Field) []byte {
	most := m.o.MaxData
	if m.row.End != "" && !m.sized || f.Kind == codec.Text {
		most = m.o.MaxLine
	}
	if f.Max > 0 {
		most = f.Max
	}
	n := 1 + m.r.IntN(8)
	if !m.o.Tame {
		switch m.r.IntN(16) {
		case 0:
			n = 0
		case 1:
			n = most - m.r.IntN(2)
		case 2:
			n = 1<<m.r.IntN(13) - 1 + m.r.IntN(3)
		}
	}
	if f.Width > 0 {
		n = f.Width
	} else {
		n = min(n, most)
	}
	v := make([]byte, n)
	any := m.r.IntN(2) == 0 && !m.o.Tame
	for i := range v {
		switch {
		case f.Chars != "":
			v[i] = f.Chars[m.r.IntN(len(f.Chars))]
		case any:
			v[i] = byte(m.r.Uint32())
		default:
			v[i] = 'a' + byte(m.r.IntN(26))
		}
	}
	if n > 0 && !m.o.Tame && m.r.IntN(8) == 0 {
		v[m.r.IntN(n)] = "\x00\r\n \t.:\"\\$*#\xff"[m.r.IntN(13)]
	}
	return v
}

// fits reports whether the row lets a value stand in the field.
func (m *maker) fits(f *codec.Field, v []byte) bool {
	s := string(v)
	switch f.Kind {
	case codec.Number, codec.Uint, codec.Signed:
		if f.Kind == codec.Uint {
			return len(v) == f.Width && f.Hi == 0
		}
		n, bad := codec.ParseNumber(v)
		return bad < 0 && n >= f.Lo && (f.Hi == 0 || n <= f.Hi) && (f.Kind == codec.Number || n <= math.MaxInt64)
	case codec.Text:
		if end := m.row.Sep; f.Term == "" && f.Width == 0 && end != "" && strings.Contains(s, end) {
			return false
		}
		if f.Term != "" && strings.Contains(s, f.Term) {
			return false
		}
		if f.NotFirst != "" && s != "" && strings.Contains(f.NotFirst, s[:1]) {
			return false
		}
		if f.Chars != "" && strings.Trim(s, f.Chars) != "" {
			return false
		}
	}
	switch {
	case f.Max > 0 && len(s) > f.Max, f.NonEmpty != "" && s == "", f.Width > 0 && len(s) != f.Width:
		return false
	case m.row.End == "" || m.sized:
		return true
	case f.Term != "" && f.Kind == codec.Opaque && strings.HasSuffix(s, f.Term[:1]):
		return false
	}
	return !strings.ContainsAny(s, "\r\n") && !strings.HasPrefix(s, "\x00") && (m.row.Stop == "" || s != m.row.Stop)
}

// inline makes a command that is a line, of words with and without quotes.
func inline(m *maker) [][]byte {
	line := pick(m, pools["Command"])
	for range m.r.IntN(4) {
		line += pick(m, []string{" ", "  ", "\t"}) + pick(m, []string{"a", "1", `"a b"`, `'it\'s'`, `"\x00\n"`, `""`})
	}
	return [][]byte{[]byte(line)}
}

// tokens makes a value of RESP that is no flat list, as its tokens.
func tokens(m *maker, kinds string) (all [][]byte) {
	kind := kinds[m.r.IntN(len(kinds))]
	n := 1 + m.r.IntN(4)
	elements := n
	if kind == '|' {
		elements = 2*n + 1 // they stand before a value
	}
	all = append(all, fmt.Append(nil, string(kind), n))
	all = append(all, []byte(pick(m, []string{"_", ":7", "*-1", "#t", "$-1"}))) // so it is no list of strings
	for range elements - 1 {
		all = m.token(all, 1)
	}
	return all
}

func (m *maker) token(all [][]byte, depth int) [][]byte {
	switch m.r.IntN(8) {
	case 0, 1, 2:
		v := m.text(&codec.Field{})
		return append(all, fmt.Append(nil, "$", len(v)), v)
	case 3:
		n := m.r.IntN(3)
		all = append(all, fmt.Append(nil, "*", n))
		for range n {
			if depth < 8 {
				all = m.token(all, depth+1)
			} else {
				all = append(all, []byte("_"))
			}
		}
		return all
	case 4:
		return append(all, strconv.AppendInt([]byte(":"), m.signed(), 10))
	case 5:
		return append(all, []byte(","+pick(m, pools["Double"])))
	case 6:
		return append(all, []byte("("+pick(m, pools["Big number"])))
	}
	return append(all, []byte(pick(m, []string{"_", "#t", "#f", "$-1", "*-1", "+OK", "-ERR no", "~0", "%0"})))
}
