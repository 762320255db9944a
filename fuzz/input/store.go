package input

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/newfile"
)

// storedInput is the JSON form of an input.
type storedInput struct {
	Mode  Mode         `json:"mode,omitempty"`
	Steps []storedStep `json:"steps"`
}

// storedStep is the JSON form of a step. Type is the name of the message type.
type storedStep struct {
	Step
	Type string `json:"type,omitempty"`
}

// stored returns the JSON form of an input.
func stored(in *Input) storedInput {
	s := storedInput{Mode: in.Mode, Steps: make([]storedStep, len(in.Steps))}
	for i, step := range in.Steps {
		if s.Steps[i].Step = step; step.Type != nil {
			s.Steps[i].Type = step.Type.Name
		}
	}
	return s
}

// input converts the JSON form to an input and checks its values.
func (s *storedInput) input(p *codec.Protocol) (*Input, error) {
	in := &Input{Mode: s.Mode}
	for _, s := range s.Steps {
		if s.Type != "" {
			if s.Step.Type = p.TypeNamed(s.Type); s.Step.Type == nil {
				return nil, fmt.Errorf("%s has no message type %q", p.Title, s.Type)
			}
		}
		if s.Conn < 0 || s.Verb > transcript.StopsReading || s.Verb == transcript.Send && s.Type == "" {
			return nil, errors.New("invalid input: the number of a connection, action or message type is out of range")
		}
		in.Steps = append(in.Steps, s.Step)
	}
	return in, nil
}

// WriteCorpus saves inputs as JSON, one per line. It replaces an existing file atomically.
func WriteCorpus(name string, inputs []*Input) error {
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	e := json.NewEncoder(w)
	for _, in := range inputs {
		if err := e.Encode(stored(in)); err != nil {
			return newfile.Close(f, err)
		}
	}
	if err := newfile.Close(f, w.Flush()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// ReadCorpus reads the inputs that WriteCorpus has saved. A missing file is an empty corpus.
func ReadCorpus(p *codec.Protocol, name string) ([]*Input, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []*Input
	d := json.NewDecoder(bufio.NewReader(f))
	for d.More() {
		var s storedInput
		err := d.Decode(&s)
		var in *Input
		if err == nil {
			in, err = s.input(p)
		}
		if err != nil {
			return all, fmt.Errorf("%s: %w", name, err)
		}
		if len(in.Steps) > 0 && in.Conns() <= MaxConns {
			all = append(all, in)
		}
	}
	return all, nil
}
