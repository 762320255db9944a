// Package native contains the code that native Go fuzz targets share, and the targets that test several protocols. The
// targets for decoders are in a separate package for each protocol. A target that links fewer packages runs faster,
// because counting coverage takes half of the time of an execution.
//
// The file .clusterfuzzlite/targets lists every target, including those in the packages that they test.
package native

import (
	"slices"

	"jobwire/codec"
	"jobwire/fuzz/gen"
	"jobwire/fuzz/laws"
)

// Decoder tests the decoder of a protocol: every accepted message must be encoded as the same bytes again, and its
// spans must contain every byte once.
type Decoder struct {
	protocol *codec.Protocol
	requests []laws.Step // the first is empty: no request
}

// Seed contains the arguments of a call of Try.
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

// Try decodes bytes and checks laws.Reencode. asked selects the sender: 0 is a peer, 1 is a server without a preceding
// request, and a greater number is a server after the request with that number.
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

// ofTypes returns seeds with messages of every type, with values at limits. A reply is combined with each request to
// which it can belong.
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

// ofCorpus returns seeds with the messages in the test vectors and example conversations of the protocol.
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

// number returns the value of asked in Try for replies to the request b.
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
