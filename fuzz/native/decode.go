// Package native contains the code that native fuzz targets share, and the targets that test several protocols. The targets
// for decoders are in one package for each protocol: the fewer packages are linked, the less coverage must be counted,
// which takes half of the time of an execution.
//
// The file .clusterfuzzlite/targets lists every target, including those in the packages that they test.
package native

import (
	"slices"

	"jobwire/codec"
	"jobwire/fuzz/gen"
	"jobwire/fuzz/laws"
)

// Decoder tests the decoder of a protocol: every accepted message must be encoded as the same bytes again, and its spans
// must contain every byte once.
type Decoder struct {
	protocol *codec.Protocol
	requests []laws.Step // the first is empty: no request
}

// Seed is the arguments of a call of Try.
type Seed struct {
	Asked byte
	Bytes []byte
}

// NewDecoder returns a Decoder and its seeds.
func NewDecoder(p *codec.Protocol) (*Decoder, []Seed) {
	d := &Decoder{p, []laws.Step{{}}}
	for _, t := range p.Types {
		if t.Ordered && t.Req != 0 {
			d.requests = append(d.requests, laws.Step{Message: gen.Of(gen.New(1), t, gen.Options{Safe: true})})
		}
	}
	return d, slices.Concat(d.ofTypes(), d.ofCorpus())
}

// Try decodes bytes. If asked is 0, a peer sends them. If asked is 1, a server sends them without a request. Otherwise, a
// server sends them after the request with that number.
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

// ofTypes returns messages of every type with values at their limits, each after every request that they may be a reply to.
func (d *Decoder) ofTypes() (seeds []Seed) {
	add := func(asked int, from codec.Side, t *codec.Type, n uint64, o gen.Options) {
		m := gen.Of(gen.New(n), t, o)
		if raw, err := d.protocol.NewSession(codec.Options{WaiveAll: true}).Append(nil, from, &m); err == nil {
			seeds = append(seeds, Seed{byte(asked), raw})
		}
	}
	for _, t := range d.protocol.Types {
		for n := range uint64(6) {
			o := gen.Options{Safe: n == 0, MaxData: 300}
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

// ofCorpus returns the messages in the test vectors and conversations of the protocol.
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

// number returns the number of a request for Try.
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
