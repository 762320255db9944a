package inject

import (
	"encoding/binary"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// samples are the variables of expressions, with values of their types: an expression is compiled for these types.
var samples = map[string]any{
	"message": &Message{}, "request": &Message{}, "job": &Job{}, "jobs": []*Job{}, "peer": &Peer{}, "peers": []*Peer{},
	"raw": "", "violates": "", "like": "", "cause": "", "heard": 0, "notes": map[string]any{},
}

// functions are the functions of expressions that do not need a server.
var functions = map[string]any{
	"len": func(v any) int { // strings in bytes; the function of the expression language counts characters
		if s, ok := v.(string); ok {
			return len(s)
		}
		return reflect.ValueOf(v).Len()
	},

	"number":     Number,
	"up_to":      func(s, sep string) string { return UpTo(sep)(s) },
	"is_queued":  func(j *Job) bool { return j.exists() && j.Queued() },
	"is_running": func(j *Job) bool { return j.exists() && j.Running() },
	"does":       func(p *Peer, name string) bool { return p.Does(name) },
	"previous":   func(p *Peer) string { return p.Last() },
	"waits":      func(j *Job, p *Peer) bool { return j.waits(p) },
	"big_endian": func(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) },
	"from_big_endian": func(s string) (n int) {
		for i := range len(s) {
			n = n<<8 | int(s[i])
		}
		return n
	},
	"replace_all": replaceAll,
	"pairs": func(list []string) map[string]string {
		all := map[string]string{}
		for pair := range slices.Chunk(list, 2) {
			all[pair[0]] = pair[len(pair)-1]
		}
		return all
	},
	"now": func() int { return int(time.Now().Unix()) },

	"same":      same,
	"different": func(a, b any) bool { return !same(a, b) },
}

// same reports whether two values are the same peer, the same job, or both nil.
func same(a, b any) bool {
	isNil := func(v any) bool { return v == nil || reflect.ValueOf(v).IsZero() }
	return a == b || isNil(a) && isNil(b)
}

// functions returns the functions of expressions that need the server. s may be nil if they are not called.
func (s *Server) functions() map[string]any {
	return map[string]any{
		"of": func(p *Peer) []*Job { return p.Jobs() },
		"by_id": func(id string) *Job {
			if j := s.ByID(id); j != nil {
				return j
			}
			return &Job{}
		},
		"ask": func(p *Peer, name string, args ...string) *Message { return p.Ask(name, args...) },
	}
}

// variable returns the name of a field in expressions.
func variable(f *codec.Field) string {
	return strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(f.Name))
}

// declare adds the fields of a message type to the variables of an expression.
func declare(env map[string]any, t *codec.Type) {
	for i := range len(t.Fields) + len(t.Repeat) {
		f := t.FieldAt(i)
		switch {
		case f == nil:
		case i < len(t.Fields):
			env[variable(f)] = ""
		default:
			env[variable(f)] = []string{}
		}
	}
}

// environment returns the variables and functions of expressions about the message.
func (m *Message) environment() map[string]any {
	s := m.Server
	if s.variables == nil {
		s.variables = s.functions()
		maps.Copy(s.variables, functions)
		maps.Copy(s.variables, s.protocol.Functions)
		for _, t := range s.protocol.Types {
			declare(s.variables, t)
		}
	}
	env := maps.Clone(s.variables)
	if t := m.layout(); t != nil {
		declare(env, t)
	}
	m.fields(func(f *codec.Field, v string) {
		name := variable(f)
		if list, ok := env[name].([]string); ok {
			env[name] = append(list, v)
		} else {
			env[name] = v
		}
	})
	env["message"], env["peer"], env["peers"], env["jobs"] = m, m.Peer, s.Peers, s.Jobs
	env["raw"], env["violates"], env["like"] = "", "", ""
	if m.Frame != nil {
		env["raw"] = string(m.Frame.Raw)
	}
	if m.Err != nil {
		env["violates"] = string(m.Err.Rule)
		if m.Frame.Type != nil {
			env["like"] = m.Frame.Type.Name
		}
	}
	env["cause"], env["heard"], env["notes"] = s.Cause, s.ReceivedCount, s.Noted
	if s.protocol.Read != nil {
		env["args"] = m.Args
	}
	if env["job"] = m.Job; m.Job == nil {
		env["job"] = &Job{}
	}
	if env["request"] = s.Request; s.Request == nil {
		env["request"] = &Message{}
	}
	return env
}

// layout returns the type whose fields the message has, or nil.
func (m *Message) layout() *codec.Type {
	switch {
	case m.Frame == nil:
		return nil
	case m.Name == Illegal || m.commands():
		return m.Frame.Type
	}
	return m.protocol.TypeNamed(m.Name)
}

// fields calls do with the fields of the message and their values.
func (m *Message) fields(do func(f *codec.Field, v string)) {
	t := m.layout()
	switch {
	case t == nil:
	case m.commands():
		for i := range m.Frame.Spans {
			if f := m.Frame.Spans[i].Field; f != nil && !f.Derived() {
				do(f, string(m.Frame.Value(i)))
			}
		}
	default:
		for i, v := range m.Args {
			if f := t.FieldAt(i); f != nil {
				do(f, v)
			}
		}
	}
}

// commands reports whether the name and the arguments of the message are those of a command, not of its message type.
func (m *Message) commands() bool { return m.protocol.Read != nil && m.Frame.From == codec.Peer }

func replaceAll(s, pattern, by string) (string, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", err
	}
	return re.ReplaceAllString(s, by), nil
}
