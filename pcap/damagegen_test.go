package pcap_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
)

// speaker generates correct conversations of one protocol. Job IDs are unique among all its connections.
type speaker struct {
	*rand.Rand
	protocol *codec.Protocol
	port     uint16
	make     func(s *speaker) []said // an exchange: requests and their replies
	jobs     int
	nested   bool // a payload that contains exchanges is being generated
	big      int  // maximum length of payloads
}

func (s *speaker) job() int { s.jobs++; return s.jobs }

// body returns a payload: random bytes, text that looks like framing, or exchanges of any protocol.
func (s *speaker) body() string {
	if s.nested {
		return "fake"
	}
	var b strings.Builder
	switch s.IntN(4) {
	case 0:
		b.WriteString(payload(s.Rand))
	case 1:
		b.WriteString(fakes(s.Rand))
	default: // messages of one side, or of both
		only := s.IntN(3)
		for range 1 + s.IntN(4) {
			p := speakers[s.IntN(len(speakers))]
			if s.IntN(3) > 0 {
				p.protocol, p.make = s.protocol, s.make
			}
			p.Rand, p.nested, p.jobs = s.Rand, true, s.jobs+s.IntN(3)
			for _, m := range p.make(&p) {
				if only == 2 || int(m.from) == only {
					b.WriteString(m.raw)
				}
			}
		}
	}
	text := b.String()
	if s.big > 0 && s.IntN(12) == 0 {
		text = strings.Repeat(text+"x", s.big/(len(text)+1)+1)
		if s.IntN(2) == 0 {
			text = strings.Repeat("x", s.IntN(9)) + text
		}
	}
	return text
}

// fakes returns a payload that consists of messages that could occur on a connection. The generators of
// exchanges never send these messages themselves.
func fakes(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString([]string{
			binaryMessage(codec.Peer, 16, "fake").raw, binaryMessage(codec.Server, 17, "fake").raw,
			binaryMessage(codec.Peer, 7, "fake", "", "x").raw, binaryMessage(codec.Server, 8, "H:fake:1").raw,
			"status\n", "fake\t0\t0\t0\n.\n",
			"put 0 0 9 4\r\nfake\r\n", "delete 9999\r\n", "INSERTED 9999\r\n", "use fake\r\n", "USING fake\r\n", "put 0 0 9 9\r\nfake",
			bulk("SET", "fake", "1"), bulk("GET", "fake"), "$4\r\nfake\r\n", ":9999\r\n",
			dangaMessage(codec.Peer, 4, "fake\x00\x00\x00\x01").raw, dangaMessage(codec.Server, 5, "fake").raw,
			"fake", "\r\n",
		}[r.IntN(20)])
	}
	return b.String()
}

// speakers are set by init, because payloads contain exchanges of all protocols.
var speakers []speaker

func init() {
	speakers = []speaker{
		{protocol: gearman.Protocol, port: 4730, make: func(s *speaker) []said {
			const p, v = codec.Peer, codec.Server
			handle := fmt.Sprintf("H:lap:%d", s.job())
			echo := s.body()
			return [][]said{
				{binaryMessage(p, 7, "f", "", s.body()), binaryMessage(v, 8, handle), binaryMessage(v, 13, handle, s.body())},
				{binaryMessage(p, 18, "f", "", s.body()), binaryMessage(v, 8, handle)},
				{binaryMessage(p, 16, echo), binaryMessage(v, 17, echo)},
				{binaryMessage(p, 1, "f"), binaryMessage(p, 9), binaryMessage(v, 11, handle, "f", s.body()), binaryMessage(p, 28, handle, s.body()), binaryMessage(p, 13, handle, s.body())},
				{binaryMessage(p, 9), binaryMessage(v, 10)},
				{{p, "version\n"}, {v, "OK 1.1\n"}},
				{{p, "status\n"}, {v, "f\t1\t0\t2\ng\t0\t0\t0\n.\n"}},
				{{p, "workers\n"}, {v, "7 127.0.0.1 - : f\n.\n"}},
				{{p, "create function a\n"}, {v, "OK\n"}},
			}[s.IntN(9)]
		}},
		{protocol: beanstalk.Protocol, port: 11300, make: func(s *speaker) []said {
			const p, v = codec.Peer, codec.Server
			id, body := s.job(), s.body()
			put := said{p, fmt.Sprintf("put 1 0 60 %d\r\n%s\r\n", len(body), body)}
			inserted := said{v, fmt.Sprintf("INSERTED %d\r\n", id)}
			yaml := "---\n- default\n- a\n"
			return [][]said{
				{put, inserted},
				{put, {p, "use default\r\n"}, inserted, {v, "USING default\r\n"}},
				{put, inserted, {p, "reserve\r\n"}, {v, fmt.Sprintf("RESERVED %d %d\r\n%s\r\n", id, len(body), body)}, {p, fmt.Sprintf("delete %d\r\n", id)}, {v, "DELETED\r\n"}},
				{{p, "peek-buried\r\n"}, {v, "NOT_FOUND\r\n"}},
				{{p, "list-tubes\r\n"}, {v, fmt.Sprintf("OK %d\r\n%s\r\n", len(yaml), yaml)}},
			}[s.IntN(5)]
		}},
		{protocol: gearmonkey.Protocol, port: 6379, make: func(s *speaker) []said {
			const p, v = codec.Peer, codec.Server
			id, body := fmt.Sprint(s.job()), s.body()
			bulked := fmt.Sprintf("$%d\r\n%s\r\n", len(body), body)
			return [][]said{
				{{p, bulk("SET", "x", body)}, {v, "+OK\r\n"}},
				{{p, bulk("GET", "x")}, {v, bulked}},
				{{p, bulk("INCR", "uid:f")}, {v, ":" + id + "\r\n"}, {p, bulk("HMSET", "job:f:"+id, "status", "idle", "input", body)}, {v, "+OK\r\n"}},
				{{p, bulk("HGETALL", "job:f:"+id)}, {v, bulk("status", "idle", "input", body)}},
				{{p, bulk("MGET", "a", "b")}, {v, "*2\r\n" + bulked + "$-1\r\n"}},
				{{p, bulk("DEL", "nothing")}, {v, ":0\r\n"}},
			}[s.IntN(6)]
		}},
		{protocol: danga.Protocol, port: 7003, make: func(s *speaker) []said {
			const p, v = codec.Peer, codec.Server
			handle := fmt.Sprintf("h%d", s.job())
			return [][]said{
				{dangaMessage(p, 4, "reverse\x00\x00\x00\x01"+s.body()), dangaMessage(v, 5, handle)},
				{dangaMessage(p, 4, "reverse\x00\x00\x00\x01"+s.body()), dangaMessage(v, 5, handle), dangaMessage(p, 9, handle), dangaMessage(v, 10, "\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff")},
				{dangaMessage(p, 4, "reverse\x00\x00\x00\x01x"), dangaMessage(v, 5, handle), dangaMessage(p, 12, handle), dangaMessage(v, 13, "\x00\x00\x00\x00\x00"+s.body())},
			}[s.IntN(3)]
		}},
	}
}

// dialogue is a correct conversation on one connection, and its segments.
type dialogue struct {
	port    uint16 // of the peer
	streams [2][]byte
	ends    [2]map[int]int // the offsets at which messages begin and end
	askedBy map[int]int    // the offset of a message of the server, and of the request that caused it
	pieces  []piece
}

// pause returns the number of bytes of a message that are sent before the sender pauses. Unless the flag asks
// for it, the sender does not pause inside a payload: if it does, and the rest of the payload is whole messages,
// a capture that lacks the beginning of the message cannot show that they were not sent.
func (s *speaker) pause(size int) int {
	if *anyPause {
		return s.IntN(size)
	}
	return s.IntN(min(size, 4))
}

// converse generates a conversation. Some requests are sent before the previous one is answered; then the reply
// to the previous one may arrive in the middle of a request.
func (s *speaker) converse(port uint16, count int) *dialogue {
	d := &dialogue{port: port, ends: [2]map[int]int{{}, {}}, askedBy: map[int]int{}}
	type burst struct {
		said
		at int // if not 0, the server sends this message after at bytes of the message before it
		by int // the number of the exchange
	}
	var all []burst
	exchanges := 0
	for range count {
		exchanges++
		x := s.make(s)
		if len(x) == 2 && x[0].from == codec.Peer && s.IntN(4) == 0 {
			y := s.make(s)
			if len(y) == 2 && y[0].from == codec.Peer {
				all = append(all, burst{x[0], 0, exchanges}, burst{y[0], 0, exchanges + 1}, burst{x[1], s.IntN(2) * s.pause(len(y[0].raw)), exchanges}, burst{y[1], 0, exchanges + 1})
				exchanges++
				continue
			}
			x = append(x, y...)
		}
		for _, m := range x {
			all = append(all, burst{m, 0, exchanges})
		}
	}
	var sent [2]int
	most := []int{1, 3, 40, 536, 1460, 65000}[s.IntN(6)]
	if s.big > 0 {
		most = max(most, 536)
	}
	exact, apart := s.IntN(2) == 0, s.IntN(2) == 0
	send := func(from codec.Side, b []byte, ack int) {
		for len(b) > 0 {
			n := min(len(b), most)
			if !exact {
				n = min(len(b), 1+s.IntN(most))
			}
			d.pieces = append(d.pieces, piece{from: from, off: sent[from], ack: ack, data: b[:n]})
			sent[from] += n
			b = b[n:]
		}
		if s.IntN(4) == 0 {
			d.pieces = append(d.pieces, piece{from: from.Other(), off: sent[from.Other()], ack: sent[from]})
		}
	}
	d.pieces = append(d.pieces, piece{from: codec.Peer, syn: true}, piece{from: codec.Server, syn: true})
	asked := map[int]int{}
	enter := func(m burst) {
		start := len(d.streams[m.from])
		d.streams[m.from] = append(d.streams[m.from], m.raw...)
		d.ends[m.from][start] = len(d.streams[m.from])
		if at, ok := asked[m.by]; m.from == codec.Server {
			d.askedBy[start] = at
		} else if !ok {
			asked[m.by] = start
		}
	}
	var pending []byte // bytes of the same sender that are sent together
	for i := 0; i < len(all); i++ {
		m := all[i]
		enter(m)
		pending = append(pending, m.raw...)
		other := m.from.Other()
		if i+1 < len(all) && all[i+1].at > 0 {
			early := all[i+1]
			at := len(pending) - len(m.raw) + early.at
			send(m.from, pending[:at], sent[other])
			pending = pending[at:]
			enter(early)
			ack := sent[m.from]
			if s.IntN(2) == 0 {
				ack -= early.at
			}
			send(other, []byte(early.raw), ack)
			i++
		}
		if i+1 < len(all) && all[i+1].from == m.from && !apart {
			continue
		}
		send(m.from, pending, sent[other])
		pending = nil
	}
	switch s.IntN(3) {
	case 0:
		for _, from := range []codec.Side{codec.Peer, codec.Server} {
			d.pieces = append(d.pieces, piece{from: from, off: sent[from], ack: sent[from.Other()], fin: true})
		}
	}
	return d
}

// frame is a packet of a capture.
type frame struct {
	of *dialogue
	piece
	lost int // bytes at the end of data that are not in the capture
}

// packet returns the packet and its length on the wire.
func (f *frame) packet(port uint16) (b []byte, length int) {
	b = f.piece.packet(port, 0xfffff000)
	at := 20 + 2*int(f.from)
	b[at], b[at+1] = byte(f.of.port>>8), byte(f.of.port)
	return b[:len(b)-f.lost], len(b)
}

// capture interleaves the packets of conversations.
func (s *speaker) capture(of []*dialogue) (all []frame) {
	var next [8]int
	for left := true; left; {
		left = false
		for i, d := range of {
			for n := s.IntN(20); next[i] < len(d.pieces) && n > 0; n-- {
				all = append(all, frame{of: d, piece: d.pieces[next[i]]})
				next[i]++
			}
			left = left || next[i] < len(d.pieces)
		}
	}
	return all
}

// damages are functions that make a capture of a connection incomplete. Each returns the remaining packets.
var damages = map[string]func(s *speaker, d *dialogue, of []frame) []frame{
	"nothing":   func(_ *speaker, _ *dialogue, of []frame) []frame { return of },
	"beginning": func(s *speaker, d *dialogue, of []frame) []frame { return cutFrames(of, d, 1+s.size(d)) },
	"client": func(s *speaker, d *dialogue, of []frame) []frame {
		return withoutSide(of, d, codec.Peer, s.IntN(2) == 0)
	},
	"server": func(s *speaker, d *dialogue, of []frame) []frame {
		return withoutSide(of, d, codec.Server, s.IntN(2) == 0)
	},
	"one segment": func(s *speaker, d *dialogue, of []frame) []frame { return s.lose(of, d, 1) },
	"segments":    func(s *speaker, d *dialogue, of []frame) []frame { return s.lose(of, d, 2+s.IntN(6)) },
	"snapped":     func(s *speaker, d *dialogue, of []frame) []frame { return snap(of, d, 1+s.IntN(200)) },
	"beginning and segments": func(s *speaker, d *dialogue, of []frame) []frame {
		return s.lose(cutFrames(of, d, 1+s.size(d)), d, 1+s.IntN(3))
	},
	"beginning and side": func(s *speaker, d *dialogue, of []frame) []frame {
		return withoutSide(cutFrames(of, d, 1+s.size(d)), d, codec.Side(s.IntN(2)), true)
	},
	"beginning and snapped": func(s *speaker, d *dialogue, of []frame) []frame {
		return snap(cutFrames(of, d, 1+s.size(d)), d, 1+s.IntN(200))
	},
}

// size returns a random number of bytes, less than d has.
func (s *speaker) size(d *dialogue) int { return s.IntN(len(d.streams[0]) + len(d.streams[1])) }

func cutFrames(of []frame, d *dialogue, n int) (out []frame) {
	for _, f := range of {
		if f.of == d {
			k := min(n, len(f.data))
			if n > 0 && k == len(f.data) {
				n -= k
				continue
			}
			n -= k
			f.off, f.data = f.off+k, f.data[k:]
		}
		out = append(out, f)
	}
	return out
}

// withoutSide removes the packets of a side, except for the SYN if it is to remain.
func withoutSide(of []frame, d *dialogue, side codec.Side, syn bool) (out []frame) {
	for _, f := range of {
		if f.of != d || f.from != side || f.syn && syn {
			out = append(out, f)
		}
	}
	return out
}

func (s *speaker) lose(of []frame, d *dialogue, n int) (out []frame) {
	var data []int
	for i, f := range of {
		if f.of == d && len(f.data) > 0 {
			data = append(data, i)
		}
	}
	lost := map[int]bool{}
	for range n {
		if len(data) > 0 {
			lost[data[s.IntN(len(data))]] = true
		}
	}
	for i, f := range of {
		if !lost[i] {
			out = append(out, f)
		}
	}
	return out
}

func snap(of []frame, d *dialogue, n int) (out []frame) {
	for _, f := range of {
		if f.of == d && len(f.data) > n {
			f.lost = len(f.data) - n
		}
		out = append(out, f)
	}
	return out
}
