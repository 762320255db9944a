package gen_test

import (
	"bytes"
	"slices"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/resp"
	"jobwire/fuzz/gen"
)

var protocols = []*codec.Protocol{gearman.Protocol, beanstalk.Protocol, gearmonkey.Protocol, danga.Protocol, resp.Protocol}

func requests(p *codec.Protocol) (all []*codec.Type) {
	for _, t := range p.Types {
		if t.Req != 0 {
			all = append(all, t)
		}
	}
	return all
}

// TestSeedDeterminesMessage tests that a seed determines which message is generated and how it is mutated.
func TestSeedDeterminesMessage(t *testing.T) {
	for _, p := range protocols {
		for seed := range uint64(200) {
			var made [2][]byte
			for i := range made {
				r := gen.New(seed)
				m := gen.Message(r, p, codec.Peer, 1, gen.Options{})
				raw, err := p.NewSession(codec.Options{}).Append(nil, codec.Peer, &m)
				if err != nil {
					t.Fatalf("%s, seed %d: %v", p.Name, seed, err)
				}
				var f codec.Frame
				if _, err := p.NewSession(codec.Options{}).Decode(codec.Peer, raw, &f); err != nil {
					t.Fatalf("%s, seed %d: %v", p.Name, seed, err)
				}
				before := bytes.Clone(raw)
				made[i] = gen.Mutate(r, p, raw, &f)
				if !bytes.Equal(raw, before) {
					t.Fatalf("%s, seed %d: the message itself was changed", p.Name, seed)
				}
			}
			if !bytes.Equal(made[0], made[1]) {
				t.Fatalf("%s, seed %d: %q and %q", p.Name, seed, made[0], made[1])
			}
		}
	}
}

// TestMessagesReachBounds tests that every request is generated, also with values at the limits.
func TestMessagesReachBounds(t *testing.T) {
	for _, p := range protocols {
		r := gen.New(1)
		seen := map[*codec.Type]int{}
		for range 20000 {
			m := gen.Message(r, p, codec.Peer, 1<<r.IntN(len(p.Roles)), gen.Options{})
			seen[m.Type]++
		}
		for _, msgType := range requests(p) {
			if seen[msgType] == 0 {
				t.Errorf("%s: no %s in 20000 messages", p.Name, msgType.Name)
			}
		}
	}
	r, longest := gen.New(2), 0
	msgType := gearman.Protocol.TypeNamed("GET_STATUS")
	for range 1000 {
		longest = max(longest, len(gen.Of(r, msgType, gen.Options{}).Args[0]))
	}
	if longest != gearman.MaxHandle {
		t.Errorf("the longest of 1000 handles has %d bytes", longest)
	}
}

// TestSafeMessagesShareNames tests that different messages that are generated with Options.Safe contain the same names.
func TestSafeMessagesShareNames(t *testing.T) {
	r := gen.New(3)
	msgType := gearman.Protocol.TypeNamed("SUBMIT_JOB")
	var names []string
	for range 100 {
		if name := string(gen.Of(r, msgType, gen.Options{Safe: true}).Args[0]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if slices.Sort(names); !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("functions %q", names)
	}
}

// TestMutationsAreOfEveryKind tests that mutations of a legal packet include another type, another length, a shorter
// message and a longer message.
func TestMutationsAreOfEveryKind(t *testing.T) {
	const packet = "\x00REQ\x00\x00\x00\x07\x00\x00\x00\x09f\x00u\x00hello"
	var f codec.Frame
	if _, err := gearman.Protocol.NewSession(codec.Options{}).Decode(codec.Peer, []byte(packet), &f); err != nil {
		t.Fatal(err)
	}
	r, found := gen.New(4), map[string]int{}
	for range 10000 {
		b := string(gen.Mutate(r, gearman.Protocol, []byte(packet), &f))
		if b == packet {
			found["the same"]++
			continue
		}
		if len(b) < 12 {
			found["no header"]++
			continue
		}
		size := int(b[8])<<24 | int(b[9])<<16 | int(b[10])<<8 | int(b[11])
		switch {
		case b[:4] != packet[:4]:
			found["magic"]++
		case b[4] >= 0x80:
			found["a type beyond 31 bits"]++
		case b[4:8] != packet[4:8]:
			found["type"]++
		case size > 1<<30:
			found["a huge length"]++
		case size == len(b)-12 && len(b) > len(packet):
			found["longer, and it says so"]++
		case size == len(b)-12 && len(b) < len(packet):
			found["shorter, and it says so"]++
		case size < len(b)-12:
			found["a length that is too small"]++
		case size > len(b)-12:
			found["a length that is too great"]++
		default:
			found["of the same length"]++
		}
	}
	for _, kind := range []string{"no header", "magic", "a type beyond 31 bits", "type", "a huge length", "longer, and it says so",
		"shorter, and it says so", "a length that is too small", "a length that is too great", "of the same length"} {
		if found[kind] < 20 {
			t.Errorf("%s: %d of 10000", kind, found[kind])
		}
	}
	if found["the same"] > 500 {
		t.Errorf("%d of 10000 are not changed at all", found["the same"])
	}
}
