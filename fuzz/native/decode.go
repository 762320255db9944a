// Package native is what native fuzz targets have in common, and has those that try more
// than one protocol. Decoders have a package for each: the less is linked, the less
// coverage there is to count, which is half of what an execution costs.
//
// .clusterfuzzlite/targets lists every target, also those that stand beside what they try.
package native

import (
	"slices"

	"jobwire/codec"
	"jobwire/fuzz/gen"
	"jobwire/fuzz/laws"
)

// Decoder tries the decoder of a protocol: what it accepts is written again as the same
// bytes, and its rows hold every byte once.
type Decoder struct {
	protocol *codec.Protocol
	requests []laws.Step // the first is none
}

// Seed is an input of Try.
type Seed struct {
	Asked byte
	Bytes []byte
}

// NewDecoder returns one, and what to begin with.
func NewDecoder(p *codec.Protocol) (*Decoder, []Seed) {
	d := &Decoder{p, []laws.Step{{}}}
	for _, t := range p.Types {
		if t.Ordered && t.Req != 0 {
			d.requests = append(d.requests, laws.Step{Message: gen.Of(gen.New(1), t, gen.Options{Tame: true})})
		}
	}
	return d, slices.Concat(d.ofRows(), d.ofCorpus())
}

// Try reads bytes: those of a peer where asked is 0, else those of a server, behind the
// request of that number, or behind none if it is 1.
func (d *Decoder) Try(asked byte, b []byte) error {
	steps := [2]laws.Step{{}, {From: codec.Server, Raw: b}}
	c := laws.Case{Protocol: d.protocol, Options: codec.Options{MaxData: 1 << 12}, Steps: steps[:]}
	if asked == 0 {
		steps[1].From = codec.Peer
	} else {
		steps[0] = d.requests[int(asked-1)%len(d.requests)]
	}
	return laws.Reencode(&c)
}

// ofRows makes messages of every row with values at their bounds, behind every request
// that they may answer.
func (d *Decoder) ofRows() (seeds []Seed) {
	add := func(asked int, from codec.Side, t *codec.Type, n uint64, o gen.Options) {
		m := gen.Of(gen.New(n), t, o)
		if raw, err := d.protocol.NewSession(codec.Options{WaiveAll: true}).Append(nil, from, &m); err == nil {
			seeds = append(seeds, Seed{byte(asked), raw})
		}
	}
	for _, t := range d.protocol.Types {
		for n := range uint64(6) {
			o := gen.Options{Tame: n == 0, MaxData: 300}
			if t.Req != 0 {
				add(0, codec.Peer, t, n, o)
			}
			for i, q := range d.requests {
				if t.Res != 0 && (i == 0 || slices.Contains(q.Message.Type.Answers, t)) {
					add(1+i, codec.Server, t, n, o)
				}
			}
		}
	}
	return seeds
}

// ofCorpus reads the vectors and conversations of the protocol.
func (d *Decoder) ofCorpus() (seeds []Seed) {
	for _, s := range scripts(d.protocol) {
		asked := byte(1)
		for i := range s.Steps {
			b := s.Steps[i].Choices[0].Bytes
			if s.Steps[i].From == codec.Peer {
				seeds = append(seeds, Seed{0, b})
				asked = d.number(b)
			} else {
				seeds = append(seeds, Seed{asked, b})
			}
		}
	}
	return seeds
}

// number returns by which number Try knows a request.
func (d *Decoder) number(b []byte) byte {
	var f codec.Frame
	if _, err := d.protocol.NewSession(codec.Options{}).Decode(codec.Peer, b, &f); err == nil {
		for i, q := range d.requests {
			if q.Message.Type == f.Type {
				return byte(1 + i)
			}
		}
	}
	return 1
}
