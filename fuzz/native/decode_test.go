// Package native has the fuzz targets that need more than the package that they try;
// others stand beside what they try. targets.txt lists all of them.
package native

import (
	"path"
	"runtime/debug"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/resp"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/fuzz/gen"
	"jobwire/fuzz/laws"
)

func init() {
	debug.SetGCPercent(1000) // what an execution leaves behind is little, and there are many
}

// The decoders of all protocols: what they accept is written again as the same bytes,
// and its rows hold every byte once.

func FuzzDecodeGearman(f *testing.F)    { decode(f, gearman.Protocol) }
func FuzzDecodeBeanstalk(f *testing.F)  { decode(f, beanstalk.Protocol) }
func FuzzDecodeGearMonkey(f *testing.F) { decode(f, gearmonkey.Protocol) }
func FuzzDecodeDanga(f *testing.F)      { decode(f, laws.Told(danga.Protocol, "worker_sleep")) }
func FuzzDecodeRESP(f *testing.F)       { decode(f, resp.Protocol) }

// decode reads bytes of a peer where asked is 0. Elsewhere they are a server's, behind
// the request of that number, or behind none.
func decode(f *testing.F, p *codec.Protocol) {
	requests := []laws.Step{{}}
	for _, t := range p.Types {
		if len(t.Replies) > 0 && t.Req != 0 {
			requests = append(requests, laws.Step{Message: gen.Of(gen.New(1), t, gen.Options{Tame: true})})
		}
	}
	if len(requests) > 254 {
		f.Fatalf("%d requests do not fit a byte", len(requests))
	}
	seeds(f, p, requests)
	f.Fuzz(func(t *testing.T, asked byte, b []byte) {
		steps := [2]laws.Step{{}, {From: codec.Server, Raw: b}}
		c := laws.Case{Protocol: p, Options: codec.Options{MaxData: 1 << 12}, Steps: steps[:]}
		if asked == 0 {
			steps[1].From = codec.Peer
		} else {
			steps[0] = requests[int(asked-1)%len(requests)]
		}
		if err := laws.Reencode(&c); err != nil {
			t.Fatal(err)
		}
	})
}

// seeds adds messages of every row with values at their bounds, behind every request
// that they may answer, and the vectors of the corpus.
func seeds(f *testing.F, p *codec.Protocol, requests []laws.Step) {
	waived := codec.Options{WaiveAll: true}
	for _, t := range p.Types {
		for n := range uint64(6) {
			o := gen.Options{Tame: n == 0, MaxData: 300}
			if t.Req != 0 {
				m := gen.Of(gen.New(n), t, o)
				if raw, err := p.NewSession(waived).Append(nil, codec.Peer, &m); err == nil {
					f.Add(byte(0), raw)
				}
			}
			for i, q := range requests {
				if t.Res == 0 || i > 0 && !answers(q.Message.Type, t) {
					continue
				}
				o.Asked = q.Message.Type
				m := gen.Of(gen.New(n), t, o)
				if raw, err := p.NewSession(waived).Append(nil, codec.Server, &m); err == nil {
					f.Add(byte(1+i), raw)
				}
			}
		}
	}
	for _, file := range []string{"accept.wire", "reject.wire", "example.wire"} {
		name := path.Join(p.Name, file)
		src, err := corpus.FS.ReadFile(name)
		if err != nil {
			continue // not every protocol has each
		}
		scripts, err := transcript.Parse(p, name, src)
		if err != nil {
			f.Fatal(err)
		}
		for _, s := range scripts {
			asked := byte(1)
			for i := range s.Steps {
				b := s.Steps[i].Choices[0].Bytes
				if s.Steps[i].From == codec.Peer {
					f.Add(byte(0), b)
					asked = number(p, requests, b)
				} else {
					f.Add(asked, b)
				}
			}
		}
	}
}

func answers(q, t *codec.Type) bool {
	for _, name := range q.Replies {
		if name == t.Name {
			return true
		}
	}
	return false
}

// number returns by which number decode knows a request.
func number(p *codec.Protocol, requests []laws.Step, b []byte) byte {
	var f codec.Frame
	if _, err := p.NewSession(codec.Options{}).Decode(codec.Peer, b, &f); err == nil {
		for i, q := range requests {
			if q.Message.Type == f.Type {
				return byte(1 + i)
			}
		}
	}
	return 1
}
