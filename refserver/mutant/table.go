package mutant

import (
	"fmt"
	"strings"

	"jobwire/codec"
	"jobwire/refserver"
)

// Cases makes IDs of conformance cases of their names, which stand apart by blanks.
func Cases(p *codec.Protocol, names string) []string {
	ids := strings.Fields(names)
	for i := range ids {
		ids[i] = p.Name + "." + ids[i]
	}
	return ids
}

// Faults reads faults as users write them; name is the mutant's, for errors.
func Faults(p *codec.Protocol, name string, texts []string) ([]refserver.Fault, error) {
	var all []refserver.Fault
	for _, text := range texts {
		f, err := refserver.ParseFault(p, text)
		if err != nil {
			return nil, fmt.Errorf("mutant %s: %w", name, err)
		}
		all = append(all, f)
	}
	return all, nil
}

// Message makes a message of its row and arguments.
func Message(t *codec.Type, args []string) *codec.Message {
	m := &codec.Message{Type: t}
	for _, a := range args {
		m.Args = append(m.Args, []byte(a))
	}
	return m
}

// Args are the values that a message has, without sizes.
func Args(f *codec.Frame) []string {
	m := new(codec.Message)
	f.Message(m)
	all := make([]string, len(m.Args))
	for i, a := range m.Args {
		all[i] = string(a)
	}
	return all
}

// Arg is the i-th of them, or "".
func Arg(f *codec.Frame, i int) string {
	if all := Args(f); i < len(all) {
		return all[i]
	}
	return ""
}
