package fuzz

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// storedStep is a step as the pool's file has it.
type storedStep struct {
	ID    int         `json:"id"`
	Conn  int         `json:"conn"`
	Verb  uint8       `json:"verb"`
	Type  string      `json:"type,omitempty"`
	Args  []storedArg `json:"args,omitempty"`
	CRLF  bool        `json:"crlf,omitempty"`
	Bytes []byte      `json:"bytes,omitempty"`
	For   int64       `json:"for,omitempty"`
}

type storedArg struct {
	Value []byte `json:"v"`
	Of    int    `json:"of,omitempty"`
}

// WritePool saves conversations, a line of JSON each. A file of that name is replaced as a
// whole.
func WritePool(name string, convs []*Conv) error {
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	e := json.NewEncoder(w)
	for _, c := range convs {
		steps := make([]storedStep, len(c.Steps))
		for i := range c.Steps {
			s := &c.Steps[i]
			steps[i] = storedStep{ID: s.ID, Conn: s.Conn, Verb: uint8(s.Verb), CRLF: s.CRLF, Bytes: s.Bytes, For: int64(s.For)}
			if s.Type != nil {
				steps[i].Type = s.Type.Name
			}
			for _, a := range s.Args {
				steps[i].Args = append(steps[i].Args, storedArg(a))
			}
		}
		if err := e.Encode(steps); err != nil {
			f.Close()
			return err
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// ReadPool reads what WritePool has saved; a file that is not there holds nothing.
func ReadPool(p *codec.Protocol, name string) ([]*Conv, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var convs []*Conv
	d := json.NewDecoder(bufio.NewReader(f))
	for d.More() {
		var steps []storedStep
		if err := d.Decode(&steps); err != nil {
			return convs, fmt.Errorf("%s: %w", name, err)
		}
		c := &Conv{}
		for _, s := range steps {
			step := Step{ID: s.ID, Conn: s.Conn, Verb: transcript.Verb(s.Verb), CRLF: s.CRLF, Bytes: s.Bytes, For: time.Duration(s.For)}
			if s.Type != "" {
				if step.Type = p.TypeNamed(s.Type); step.Type == nil {
					return convs, fmt.Errorf("%s: %s has no message type %q", name, p.Title, s.Type)
				}
			}
			if step.Conn < 0 || step.Conn >= maxConns || step.Verb > transcript.Resets || step.Verb == transcript.Send && step.Type == nil {
				return convs, fmt.Errorf("%s: a step that cannot be taken", name)
			}
			for _, a := range s.Args {
				step.Args = append(step.Args, Arg(a))
			}
			c.Steps = append(c.Steps, step)
		}
		if len(c.Steps) > 0 {
			convs = append(convs, c)
		}
	}
	return convs, nil
}
