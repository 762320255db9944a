package beanstalk

import (
	"fmt"
	"strings"
	"testing"

	"jobwire/codec"
)

var (
	dictionary = Protocol.TypeNamed("stats-reply")
	list       = Protocol.TypeNamed("list-reply")
)

// TestYAMLAccepts tests that the YAML reader accepts dictionaries and lists with comments, quotes, empty values and
// braces or brackets.
func TestYAMLAccepts(t *testing.T) {
	for body, want := range map[string]*codec.Type{
		"---\na: 1\n":             dictionary,
		"a: 1":                    dictionary,
		"---\r\na: 1\r\nb: 2\r\n": dictionary,
		"--- # statistics\n\n  # more\na: b # c\n":         dictionary,
		"---\n  a: 1\n  b: 2\n...\n# end\n":                dictionary,
		"\"a\": \"1\"\n'b': 'it''s'\nc: \"\\u00e9\\\"\"\n": dictionary,
		"a:\nb: \nc: # nothing\nd:\t1\n":                   dictionary,
		"a: http://b:80/#c\n":                              dictionary,
		"1: a\n\"1\": b\nA: c\na: d\n":                     dictionary, // a number and a string
		"a: -1\nb: -c\n":                                   dictionary,
		"os: #1 SMP\nversion: \"1.12\"\n":                  dictionary,
		"hostname: größe\n":                                dictionary,
		"--- {a: 1, \"b\":2, c, 'd': }\n":                  dictionary,
		"{\n  a: 1,\n  b: 2, # more\n}\n":                  dictionary,
		"{}":                                               dictionary,
		"- a\n- \"b\"\n- 'c'\n-\n":                         list,
		"---\n- a:b\n":                                     list,
		"[a, \"b\", 'c']":                                  list,
		"--- [\n a,\n b,\n]\n...\n":                        list,
		"[]":                                               list,
	} {
		r := yamlReader{b: []byte(body), msgType: want}
		if bad := r.document(); bad != nil {
			t.Errorf("%s %q: byte %d: %s", want.Name, body, bad.at, bad.detail)
		}
	}
}

// TestYAMLRefuses tests that the YAML reader rejects a body that is not a flat dictionary or list, or has a key twice,
// and says where and what it expected.
func TestYAMLRefuses(t *testing.T) {
	tests := []struct {
		msgType *codec.Type
		body    string
		at      int
		detail  string
	}{
		{dictionary, "", 0, "expected a YAML dictionary, got an empty document"},
		{list, "# none\n", 0, "expected a YAML list, got an empty document"},
		{dictionary, "---\n- a\n", 0, "expected a YAML dictionary, got a list"},
		{dictionary, "[a]", 0, "expected a YAML dictionary, got a list"},
		{list, "{a: b}", 0, "expected a YAML list, got a dictionary"},
		{list, "a: b\n", 0, "expected a YAML list, got an entry without a dash"},
		{dictionary, "a\n", 0, "expected a YAML dictionary, got an entry without a colon"},
		{dictionary, "a: b\nc\n", 5, "expected a key, a colon and a value, got no colon after the key"},
		{dictionary, "a: b\n- c\n", 5, "expected a key, got a list item"},
		{dictionary, "a: [b]\n", 3, "expected a scalar, got a list"},
		{dictionary, "a: {b: c}\n", 3, "expected a scalar, got a dictionary"},
		{dictionary, "a: b: c\n", 3, "expected a scalar, got a dictionary"},
		{dictionary, "a: &x b\n", 3, "expected a scalar, got an anchor"},
		{dictionary, "a: *x\n", 3, "expected a scalar, got an alias"},
		{dictionary, "a: !!str b\n", 3, "expected a scalar, got a tag"},
		{dictionary, "a: |\n  b\n", 3, "expected a scalar, got a block scalar"},
		{dictionary, "a: - b\n", 3, "expected a scalar, got a list item"},
		{dictionary, "? a\n: b\n", 0, `expected a key, got "?"`},
		{dictionary, "a:\n  b: c\n", 5, "expected an entry after 0 spaces, got one after 2"},
		{dictionary, "\ta: b\n", 0, "expected spaces before the entry, got a tab"},
		{dictionary, "a: \"b\n", 3, "expected a closing quote in the same line, got none"},
		{dictionary, "a: 'b''\n", 3, "expected a closing quote in the same line, got none"},
		{dictionary, `a: "\q"`, 4, `expected an escape sequence after the backslash, got "q"`},
		{dictionary, `a: "\x4"`, 7, `expected a hexadecimal digit, got "\""`},
		{dictionary, "a: \"b\" c\n", 7, `expected the end of the line after the scalar, got "c"`},
		{dictionary, "--- a: b\n", 4, `expected the end of the line after ---, got "a"`},
		{dictionary, "a: b\n---\nc: d\n", 5, "expected one YAML document, got a second one"},
		{dictionary, "a: b\n...\nc: d\n", 9, `expected the end of the YAML document, got "c"`},
		{list, "- - a\n", 2, "expected a scalar, got a list item"},
		{list, "- a: b\n", 2, "expected a scalar, got a dictionary"},
		{list, "[a, [b]]", 4, "expected a scalar, got a list"},
		{list, "[a: b]", 1, "expected a scalar, got a dictionary"},
		{list, "[a, b", 5, `expected a comma or ']', got the end of the body`},
		{list, "[a,", 3, `expected ']', got the end of the body`},
		{list, "[a]]", 3, `expected the end of the line after ']', got "]"`},
		{list, "[,]", 1, `expected a scalar, got ","`},
		{list, "- a\x00\n", 3, "expected text, got the control character 0x00"},
		{dictionary, "a: 1\nb: 2\na: 3\n", 10, `expected each key once, got "a" again`},
		{dictionary, "a: 1\n\"a\": 2\n'\u0061': 3\n", 5, `expected each key once, got "a" again`},
		{dictionary, "\"\\x61\": 1\nb: 2\nb: 3\na: 4\n", 15, `expected each key once, got "b" again`},
		{dictionary, "1: a\n\"1\": b\n'1': c\n", 12, `expected each key once, got "1" again`},
		{dictionary, "{a: 1, 'a': 2}", 7, `expected each key once, got "a" again`},
		{list, "- \xff\n", 2, "expected text in UTF-8, got the byte 0xff"},
	}
	for _, tt := range tests {
		r := yamlReader{b: []byte(tt.body), msgType: tt.msgType}
		if bad := r.document(); bad == nil || bad.at != tt.at || bad.detail != tt.detail {
			t.Errorf("%s %q: %+v; want byte %d: %q", tt.msgType.Name, tt.body, bad, tt.at, tt.detail)
		}
	}
}

// TestYAMLIsLinear tests that the YAML reader reads each byte at most 16 times on average, also in bodies that make
// other decoders recurse or read bytes repeatedly.
func TestYAMLIsLinear(t *testing.T) {
	pieces := []string{"[", "{", "- ", "? ", "&a *a ", "&a ", "*a ", "!!a ", " ", "\t", "\"", "'", "''", "\"\\", "a", "a: ", "a:", ":", ": ", ",", "#", " #", "\n", "\r\n", "\r",
		"- a\n", "a: b\n", "a: 'b' # c\n", "- \"a\\x41\"\n", "[a],", "a,", "{a: b}, ", "---\n", "...\n", "|\n ", "\x00", "\xff", "ä"}
	for _, lead := range []string{"", "- ", "a: ", "[", "{a: '", "- \"", "---\na: b\n"} {
		for _, p := range pieces {
			for _, size := range []int{64 << 10, 256 << 10} {
				body := []byte(lead + strings.Repeat(p, size/len(p)))
				for _, msgType := range []*codec.Type{dictionary, list} {
					r := yamlReader{b: body, msgType: msgType}
					r.document()
					if most := 16 * len(body); r.reads > most {
						t.Errorf("%s: %q, then %q up to %d bytes: looked at %d bytes, want at most %d", msgType.Name, lead, p, size, r.reads, most)
					}
				}
			}
		}
	}
}

// TestYAMLRefusesDeepIndentation checks that nesting by indentation is rejected too.
func TestYAMLRefusesDeepIndentation(t *testing.T) {
	var body strings.Builder
	for i := range 300 {
		fmt.Fprintf(&body, "%*sa:\n", i, "")
	}
	r := yamlReader{b: []byte(body.String()), msgType: dictionary}
	if bad := r.document(); bad == nil || bad.at != 4 || bad.detail != "expected an entry after 0 spaces, got one after 1" {
		t.Errorf("%+v", bad)
	}
}

// TestLongYAML checks that a list with more spans than a message may have is a body without parts, and that a dictionary
// has a limit.
func TestLongYAML(t *testing.T) {
	for _, tt := range []struct {
		request, entries, want string
		rule                   codec.RuleID
	}{
		{"list-tubes\r\n", strings.Repeat("- a\n", maxSpans-4), "list-reply", ""},
		{"list-tubes\r\n", strings.Repeat("- a\n", maxSpans), "OK", ""},
		{"stats\r\n", strings.Repeat("a:\n", maxSpans+1), "OK", RuleReplyYAML},
	} {
		s, f := newSession(codec.Options{}), codec.Frame{}
		s.Decode(codec.Peer, []byte(tt.request), &f)
		_, err := s.Decode(codec.Server, fmt.Appendf(nil, "OK %d\r\n%s\r\n", len(tt.entries), tt.entries), &f)
		var rule codec.RuleID
		if e, bad := err.(*codec.Error); bad {
			rule = e.Rule
		}
		if rule != tt.rule || f.Type.Name != tt.want || len(f.Spans) > maxSpans {
			t.Errorf("%.20q: %s with %d spans, %v", tt.entries, f.Type.Name, len(f.Spans), err)
		}
	}
}

// TestHostileYAMLIsRefused tests that bodies that repeat one piece of YAML, with which other decoders recurse deeply,
// violate the rule about YAML in each reply that has a body.
func TestHostileYAMLIsRefused(t *testing.T) {
	for _, piece := range []string{"[", "{", "- ", "? ", "&a *a ", " ", "\"", "'"} {
		for _, request := range []string{"stats", "stats-job 1", "stats-tube t", "list-tubes", "list-tubes-watched"} {
			body := strings.Repeat(piece, (60<<10)/len(piece))
			s := Protocol.NewSession(codec.Options{})
			read(t, s, codec.Peer, request+"\r\n")
			if got := read(t, s, codec.Server, fmt.Sprintf("OK %d\r\n%s\r\n", len(body), body)); len(got) != 1 || got[0] != string(RuleReplyYAML) {
				t.Errorf("%s: %q... read as %.80q", request, piece, got)
			}
		}
	}
}
