package export_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/export"
)

// A line of a dictionary as AFL++ (load_extras_file) and libFuzzer (ParseOneDictionaryEntry) read it, with a name in small
// letters.
var (
	dictionaryLine = regexp.MustCompile(`\A([a-z0-9_]+)="((?:[ !#-\[\]-~]|\\x[0-9a-f]{2})+)"\z`)
	dictionaryByte = regexp.MustCompile(`\\x..`)
)

// readDictionary returns the tokens of a dictionary by name, and the names in their order.
func readDictionary(t *testing.T, p *codec.Protocol) (tokens map[string]string, names []string) {
	t.Helper()
	var out, again bytes.Buffer
	if err := export.Dictionary(&out, p); err != nil {
		t.Fatal(err)
	}
	if export.Dictionary(&again, p); out.String() != again.String() {
		t.Error("two dictionaries of the same protocol differ")
	}
	tokens = map[string]string{}
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := dictionaryLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("the line %q has the wrong form", line)
			continue
		}
		if _, ok := tokens[m[1]]; ok {
			t.Errorf("two tokens have the name %s", m[1])
		}
		tokens[m[1]] = dictionaryByte.ReplaceAllStringFunc(m[2], func(hex string) string {
			n, _ := strconv.ParseUint(hex[2:], 16, 8)
			return string([]byte{byte(n)})
		})
		names = append(names, m[1])
	}
	return tokens, names
}

// TestDictionary tests that the exported fuzzing dictionary has a token for the beginning of each message type, for
// each listed value and for the limits of each number, no token twice, and none that is too long for AFL++.
func TestDictionary(t *testing.T) {
	for _, p := range protocols {
		t.Run(p.Name, func(t *testing.T) {
			tokens, names := readDictionary(t, p)
			if !slices.IsSorted(names) {
				t.Error("the lines are not sorted by name")
			}
			nameOf := map[string]string{}
			for _, name := range names {
				v := tokens[name]
				if other, ok := nameOf[v]; ok {
					t.Errorf("%s and %s are the same token", name, other)
				}
				if nameOf[v] = name; len(v) > 128 {
					t.Errorf("%s has %d bytes, more than AFL++ accepts", name, len(v))
				}
			}
			typed := 0
			for _, typ := range p.Types {
				if !typ.Sends(codec.Peer) {
					continue
				}
				raw, err := p.NewSession(codec.Options{}).Append(nil, codec.Peer, typ.Sample())
				if err == nil && slices.ContainsFunc(names, func(n string) bool {
					return strings.HasPrefix(n, "type_") && strings.HasPrefix(string(raw), tokens[n])
				}) {
					typed++
				} else if !typ.AnyCommand {
					t.Errorf("no token is the beginning of %s", typ.Name)
				}
				for _, f := range typ.Fields {
					for _, v := range slices.Concat(f.Values, f.Examples) {
						if len(v) <= 128 && v != "" && nameOf[v] == "" {
							t.Errorf("%s: the dictionary lacks the value %q of %s", typ.Name, v, f.Name)
						}
					}
					if f.Kind == codec.Number && f.Hi > 0 && (nameOf[fmt.Sprint(f.Hi)] == "" || nameOf[fmt.Sprint(f.Hi+1)] == "") {
						t.Errorf("%s: the dictionary lacks the limit of %s", typ.Name, f.Name)
					}
				}
			}
			t.Logf("%d tokens, which begin %d message types", len(tokens), typed)
		})
	}
}

// TestDictionaryTokens checks tokens of each kind.
func TestDictionaryTokens(t *testing.T) {
	want := map[string]map[string]string{
		"gearman": {"magic_req": "\x00REQ", "type_submit_job": "\x00REQ\x00\x00\x00\x07", "type_show_jobs": "show jobs\n", "separator_00": "\x00",
			"value_option_exceptions": "exceptions", "number_64_uint32": "\x00\x00\x00\x40", "number_minus_1": "-1"},
		"danga":      {"type_job_create_req": "GEAR\x04", "number_3_uint8": "\x03", "number_4097_uint32": "\x00\x00\x10\x01"},
		"beanstalk":  {"type_put": "put ", "type_quit": "quit\r\n", "separator_0d0a": "\r\n", "number_65536": "65536", "number_4294967296": "4294967296"},
		"gearmonkey": {"type_get_count": "*2\r\n$3\r\nGET\r\n", "word_queue": "queue:", "value_priority_high": "high", "kind_2a": "*", "word_subscribe": "SUBSCRIBE"},
	}
	for _, p := range protocols {
		tokens, _ := readDictionary(t, p)
		for name, v := range want[p.Name] {
			if tokens[name] != v {
				t.Errorf("%s: %s is %q, want %q", p.Name, name, tokens[name], v)
			}
		}
	}
}

// TestDictionaryEscapes checks tokens with characters that have a meaning in dictionaries, long tokens and long names.
func TestDictionaryEscapes(t *testing.T) {
	values := []string{`say "x" \ \x41`, "\xff\x7f\n", "#", " ", strings.Repeat("v", 128), strings.Repeat("w", 129), "X", "x"}
	p := &codec.Protocol{Name: "x", Title: "X", Types: codec.JoinTypes([]codec.Type{{Name: "T", Req: 1, Fields: []codec.Field{{Name: "Field", Values: values}}}}),
		NewSession: protocols[0].NewSession}
	tokens, names := readDictionary(t, p)
	var got []string
	for _, name := range names {
		got = append(got, tokens[name])
	}
	for i, v := range values {
		if slices.Contains(got, v) != (i != 5) {
			t.Errorf("got the tokens %q, want all of %q except the one of 129 bytes", got, values)
		}
	}
}
