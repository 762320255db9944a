package headers

// Limits of the fragments that wait for the rest of their packet.
const (
	maxFragmented = 256     // packets
	maxIPPacket   = 1 << 16 // bytes of one packet
)

// fragmentKey identifies the IP packet to which a fragment belongs.
type fragmentKey struct {
	path, srcHi, srcLo, dstHi, dstLo uint64
	id                               uint32
	proto                            byte // IPv4 numbers its packets per protocol
}

// fragmented is an incomplete packet.
type fragmented struct {
	b     []byte
	have  []span // the parts of b that have arrived, which do not touch each other
	total int    // size of the packet, -1 until the last fragment has arrived
	order int
}

type span struct{ from, to int }

// fragments reassembles IP packets.
type fragments struct {
	parts map[fragmentKey]*fragmented
	count int
}

// add adds a fragment. It returns the whole packet once all of its fragments have arrived, otherwise nil.
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

// evict discards the oldest packet if there are too many.
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
}

// cover records that a range of bytes has arrived, and merges it with the ranges that it touches.
func (f *fragmented) cover(n span) {
	kept := f.have[:0]
	for _, h := range f.have {
		if h.to < n.from || h.from > n.to {
			kept = append(kept, h)
		} else {
			n.from, n.to = min(n.from, h.from), max(n.to, h.to)
		}
	}
	f.have = append(kept, n)
}
