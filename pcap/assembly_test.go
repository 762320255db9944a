package pcap_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/tcpassembly"

	"jobwire/codec"
	"jobwire/pcap"
)

// assembled is the output of another reassembler: the bytes of each direction, and the number of bytes skipped.
type assembled struct {
	port    uint16
	streams [2][]byte
	skipped [2]int
	seen    [2]bool
}

// assembler is the other reassembler. Its memory is large, so it is used for all captures, one after another.
type assembler struct {
	*tcpassembly.Assembler
	now *assembled // the output for the present capture
}

func newAssembler() *assembler {
	a := &assembler{}
	a.Assembler = tcpassembly.NewAssembler(tcpassembly.NewStreamPool(a))
	return a
}

// New begins a stream. The assembler forgets a closed stream, so a repeated segment begins another stream,
// which is ignored.
func (asm *assembler) New(_, ports gopacket.Flow) tcpassembly.Stream {
	a := asm.now
	side := codec.Peer
	if ports.Src() == layers.NewTCPPortEndpoint(layers.TCPPort(a.port)) {
		side = codec.Server
	}
	if a.seen[side] {
		return &assembledStream{&assembled{}, side}
	}
	a.seen[side] = true
	return &assembledStream{a, side}
}

type assembledStream struct {
	to   *assembled
	side codec.Side
}

func (s *assembledStream) Reassembled(pieces []tcpassembly.Reassembly) {
	for _, p := range pieces {
		s.to.skipped[s.side] += max(0, p.Skip)
		s.to.streams[s.side] = append(s.to.streams[s.side], p.Bytes...)
	}
}

func (s *assembledStream) ReassemblyComplete() {}

// assemble reassembles packets with gopacket's tcpassembly.
func (asm *assembler) assemble(packets [][]byte, port uint16) *assembled {
	asm.now = &assembled{port: port}
	for _, b := range packets {
		p := gopacket.NewPacket(b, layers.LayerTypeIPv4, gopacket.NoCopy)
		if tcp, ok := p.TransportLayer().(*layers.TCP); ok {
			asm.Assemble(p.NetworkLayer().NetworkFlow(), tcp)
		}
	}
	asm.FlushAll()
	return asm.now
}

// TestReassemblyMatchesOtherImplementation compares the bytes of both directions, and the number of missing bytes, with those
// of an independent reassembler.
func TestReassemblyMatchesOtherImplementation(t *testing.T) {
	asm := newAssembler()
	for _, ex := range exchanges {
		for seed := range uint64(80) {
			r := rand.New(rand.NewPCG(seed, 6))
			all, pieces := segmented(r, ex, 1+r.IntN(15), []int{5, 100, 1460}[seed%3])
			gone := pieces[2+r.IntN(len(pieces)-4)]
			pieces = disorder(r, pieces, streamsOf(all))
			if seed%2 == 1 {
				pieces = without(pieces, gone)
			}
			var packets [][]byte
			for i := range pieces {
				packets = append(packets, pieces[i].packet(ex.port, 0xfffffff0))
			}
			got, want := readPackets(packets, pcap.Options{}), asm.assemble(packets, ex.port)
			for side := range 2 {
				if got.skipped { // the protocol was not decided before the loss
					continue
				}
				if !bytes.Equal(got.streams[side], want.streams[side]) {
					t.Errorf("%s: seed %d: side %d: %d bytes, tcpassembly has %d", ex.protocol.Name, seed, side, len(got.streams[side]), len(want.streams[side]))
				}
			}
			if n := int64(want.skipped[0] + want.skipped[1]); got.stats.Missing != n {
				t.Errorf("%s: seed %d: %d bytes are missing, tcpassembly misses %d", ex.protocol.Name, seed, got.stats.Missing, n)
			}
		}
	}
}
