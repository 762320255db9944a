package fuzz

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// storedStep is a step in the file of the corpus.
type storedStep struct {
	Step
	Type string `json:"type,omitempty"`
}

// WriteCorpus saves inputs, one line of JSON for each. It replaces an existing file as a whole.
func WriteCorpus(name string, inputs []*Input) error {
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	e := json.NewEncoder(w)
	for _, c := range inputs {
		steps := make([]storedStep, len(c.Steps))
		for i, s := range c.Steps {
			if steps[i].Step = s; s.Type != nil {
				steps[i].Type = s.Type.Name
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

// ReadCorpus reads what WriteCorpus has saved. A missing file is an empty corpus.
func ReadCorpus(p *codec.Protocol, name string) ([]*Input, error) {
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var inputs []*Input
	d := json.NewDecoder(bufio.NewReader(f))
	for d.More() {
		var steps []storedStep
		if err := d.Decode(&steps); err != nil {
			return inputs, fmt.Errorf("%s: %w", name, err)
		}
		c := &Input{}
		for _, s := range steps {
			if s.Type != "" {
				if s.Step.Type = p.TypeNamed(s.Type); s.Step.Type == nil {
					return inputs, fmt.Errorf("%s: %s has no message type %q", name, p.Title, s.Type)
				}
			}
			if s.Conn < 0 || s.Conn >= maxConns || s.Verb > transcript.Resets || s.Verb == transcript.Send && s.Type == "" {
				return inputs, fmt.Errorf("%s: invalid input: the number of a connection, action or message type is out of range", name)
			}
			c.Steps = append(c.Steps, s.Step)
		}
		if len(c.Steps) > 0 {
			inputs = append(inputs, c)
		}
	}
	return inputs, nil
}
