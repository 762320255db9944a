package pcap

// Bounds of what waits for the rest of its packet.
const (
	maxFragmented = 256     // packets
	maxIPPacket   = 1 << 16 // bytes of one
)

// fragmentKey tells the fragments of one packet from those of others.
type fragmentKey struct {
	srcHi, srcLo, dstHi, dstLo uint64
	id                         uint32
	proto                      byte // IPv4 counts its packets by protocol
}

// fragmented is a packet that is not there as a whole.
type fragmented struct {
	b     []byte
	have  []span // of b, apart from each other
	total int    // its size, -1 while the last fragment has not come
	order int
}

type span struct{ from, to int }

// fragments puts IP packets together.
type fragments struct {
	parts map[fragmentKey]*fragmented
	count int
	lost  int // packets given up
}

// add takes a fragment. It returns what all of them hold together once they are
// there, else nil.
func (fs *fragments) add(key fragmentKey, b []byte, at int, more bool) []byte {
	if at+len(b) > maxIPPacket {
		return nil
	}
	if fs.parts == nil {
		fs.parts = map[fragmentKey]*fragmented{}
	}
	p := fs.parts[key]
	if p == nil {
		fs.evict()
		fs.count++
		p = &fragmented{total: -1, order: fs.count}
		fs.parts[key] = p
	}
	if !more {
		p.total = at + len(b)
	}
	if need := at + len(b); need > len(p.b) {
		p.b = append(p.b, make([]byte, need-len(p.b))...)
	}
	copy(p.b[at:], b)
	p.cover(span{at, at + len(b)})
	if p.total < 0 || len(p.have) != 1 || p.have[0].from > 0 || p.have[0].to < p.total {
		return nil
	}
	delete(fs.parts, key)
	return p.b[:p.total]
}

// evict makes room by giving up the oldest.
func (fs *fragments) evict() {
	if len(fs.parts) < maxFragmented {
		return
	}
	var oldest fragmentKey
	first := fs.count + 1
	for k, p := range fs.parts {
		if p.order < first {
			oldest, first = k, p.order
		}
	}
	delete(fs.parts, oldest)
	fs.lost++
}

// cover notes that a part is there, and joins it with those it touches.
func (p *fragmented) cover(n span) {
	kept := p.have[:0]
	for _, h := range p.have {
		if h.to < n.from || h.from > n.to {
			kept = append(kept, h)
		} else {
			n.from, n.to = min(n.from, h.from), max(n.to, h.to)
		}
	}
	p.have = append(kept, n)
}
