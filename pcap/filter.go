package pcap

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// Filter selects items. It is a list of terms, all of which must match, such as:
//
//	type=SUBMIT_JOB function=rev* to=server rule!=* after=2s
//
// A term is KEY=PATTERN or KEY!=PATTERN; the patterns are those of [path.Match]. Keys are type, protocol,
// connection, to (server or client), role (of the peer, in lower case), rule (of violations), after and before
// (minimum and maximum time since the first packet), and every argument of a message, by its name in lower case
// or the end of the name: function, unique-id, handle, tube, id. An item without the argument matches only
// terms with !=.
type Filter struct {
	terms []term
	start int64
	begun bool
}

type term struct {
	key, pattern string
	not          bool
	value        func(it *Item) string // nil for arguments and times
	since        time.Duration
}

// values are the keys that are not arguments.
var values = map[string]func(it *Item) string{
	"type": func(it *Item) string {
		if it.isMessage() && it.Frame.Type != nil {
			return it.Frame.Type.Name
		}
		return ""
	},
	"protocol": func(it *Item) string {
		if it.Conn.Protocol == nil {
			return "unknown"
		}
		return it.Conn.Protocol.Name
	},
	"connection": func(it *Item) string { return strconv.Itoa(it.Conn.ID) },
	"to": func(it *Item) string {
		if it.From == codec.Server {
			return "client"
		}
		return "server"
	},
	"role": func(it *Item) string {
		if it.Conn.Protocol == nil {
			return ""
		}
		return strings.ToLower(it.Conn.Protocol.RoleNames(it.Conn.Role))
	},
	"rule": func(it *Item) string {
		if it.Err == nil {
			return ""
		}
		return string(it.Err.Rule)
	},
	"after":  nil,
	"before": nil,
}

// ParseFilter parses a filter, whose terms are separated by white space.
func ParseFilter(s string) (*Filter, error) {
	f := &Filter{}
	for word := range strings.FieldsSeq(s) {
		key, pattern, ok := strings.Cut(word, "=")
		t := term{key: key, pattern: pattern}
		t.key, t.not = strings.CutSuffix(key, "!")
		if !ok || t.key == "" {
			return nil, fmt.Errorf("expected KEY=PATTERN or KEY!=PATTERN, got %q", word)
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("%q: %w", word, err)
		}
		t.value = values[t.key]
		if _, known := values[t.key]; known && t.value == nil {
			var err error
			if t.since, err = time.ParseDuration(pattern); err != nil || t.not {
				return nil, fmt.Errorf("expected a duration since the first packet, as in %s=2s, got %q", t.key, word)
			}
		} else if !known && !isArgument(t.key) {
			return nil, fmt.Errorf("unknown key %q: expected type, protocol, connection, to, role, rule, after, before or the name of a message argument", t.key)
		}
		f.terms = append(f.terms, t)
	}
	return f, nil
}

// argumentKey returns the key of an argument in filters.
func argumentKey(fd *codec.Field) string {
	return strings.ReplaceAll(strings.ToLower(fd.Name), " ", "-")
}

func called(fd *codec.Field, key string) bool {
	name := argumentKey(fd)
	return name == key || strings.HasSuffix(name, "-"+key)
}

// isArgument reports whether a message type of any protocol has an argument with the key.
func isArgument(key string) bool {
	for _, p := range codec.Protocols() {
		for _, t := range p.Types {
			for _, fields := range [...][]codec.Field{t.Fields, t.Repeat} {
				for i := range fields {
					if !fields[i].Derived() && called(&fields[i], key) {
						return true
					}
				}
			}
		}
	}
	return false
}

// begin records the time of the first packet. It is called for every packet.
func (f *Filter) begin(at int64) {
	if !f.begun {
		f.start, f.begun = at, true
	}
}

// Match reports whether the filter selects an item.
func (f *Filter) Match(it *Item) bool {
	for i := range f.terms {
		t := &f.terms[i]
		switch {
		case t.key == "after":
			if it.At-f.start < int64(t.since) {
				return false
			}
		case t.key == "before":
			if it.At-f.start > int64(t.since) {
				return false
			}
		case t.value != nil:
			v := t.value(it)
			if ok, _ := path.Match(t.pattern, v); (ok && v != "") == t.not {
				return false
			}
		case t.argument(it) == t.not:
			return false
		}
	}
	return true
}

// argument reports whether a message has an argument that matches the term.
func (t *term) argument(it *Item) bool {
	if !it.isMessage() {
		return false
	}
	for i := range it.Frame.Spans {
		fd := it.Frame.Spans[i].Field
		if fd.Derived() || !called(fd, t.key) {
			continue
		}
		v := string(it.Frame.Value(i))
		if fd.Kind == codec.Uint {
			v = strconv.FormatUint(codec.BigEndian(it.Frame.Value(i)), 10)
		}
		if ok, _ := path.Match(t.pattern, v); ok {
			return true
		}
	}
	return false
}
