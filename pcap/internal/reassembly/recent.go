package reassembly

import (
	"bytes"
	"encoding/binary"
)

// Limits of the search for earlier data.
const (
	recentSize  = 1 << 20  // bytes of recent data of all connections, a power of 2
	recentFirst = 64 << 10 // bytes for which memory is allocated at first; it is doubled until it is recentSize
	recentBytes = 64 << 10 // bytes back in the stream of a direction
	recentCount = 1 << 10  // segments of a direction
)

// recent contains the latest data of all streams, for comparison with retransmissions. It is a ring of records.
// A record contains the position of the previous record of the same direction, the sequence number and length
// of the data, and the data.
type recent struct {
	ring []byte
	next int64 // position of the next record; the position in ring is the rest of a division by recentSize
}

const recordHeader = 16

// add keeps the next data of a direction. The data is lost if it is larger than a quarter of the ring.
func (r *recent) add(h *half, b []byte) {
	size := int64(recordHeader + len(b))
	if size > recentSize/4 {
		return
	}
	if r.ring == nil {
		r.next = recentSize // 0 is not a position
	}
	at := r.next & (recentSize - 1)
	if at+size > recentSize { // a record is not split
		r.next += recentSize - at
		at = 0
	}
	for at+size > int64(len(r.ring)) {
		grown := make([]byte, max(recentFirst, 2*len(r.ring)))
		copy(grown, r.ring)
		r.ring = grown
	}
	rec := r.ring[at : at+size]
	binary.LittleEndian.PutUint64(rec, uint64(h.recent))
	binary.LittleEndian.PutUint32(rec[8:], h.next)
	binary.LittleEndian.PutUint32(rec[12:], uint32(len(b)))
	copy(rec[recordHeader:], b)
	h.recent = r.next
	r.next += size
}

// differs compares b, a retransmission that begins at seq, with the data that was sent first. It returns the offset in b of
// the first byte that differs, and the earlier data from there on, or -1.
func (r *recent) differs(h *half, seq uint32, b []byte) (at int, earlier []byte) {
	if h.next-seq > recentBytes {
		return -1, nil
	}
	at = -1
	// From the latest record that is not overwritten to earlier ones, so that the last difference found is the first in b.
	for pos, n := h.recent, 0; pos > r.next-recentSize && n < recentCount; n++ {
		rec := r.ring[pos&(recentSize-1):]
		pos = int64(binary.LittleEndian.Uint64(rec))
		first, size := binary.LittleEndian.Uint32(rec[8:]), binary.LittleEndian.Uint32(rec[12:])
		data := rec[recordHeader : recordHeader+size]
		off := int(int32(first - seq)) // of the record in b
		if off+len(data) <= 0 {
			break // earlier records of the stream have lower sequence numbers
		}
		if off >= len(b) {
			continue
		}
		from, to := max(off, 0), min(off+len(data), len(b))
		if !bytes.Equal(b[from:to], data[from-off:to-off]) {
			for b[from] == data[from-off] {
				from++
			}
			at, earlier = from, data[from-off:]
		}
	}
	return at, earlier
}

// compare reports data of a segment that was sent again with other bytes. The stream is not changed. A single byte before
// the next one is not compared: TCP keep-alive probes may contain any byte there (RFC 1122, 4.2.3.6).
func (h *half) compare(s *Segment, b []byte) {
	if h.recent == 0 || len(b) == 0 || len(b) == 1 && s.Seq+1 == h.next {
		return
	}
	if off, earlier := h.c.a.recent.differs(h, s.Seq, b); off >= 0 {
		h.stream().Conflict(earlier, b[off:], s.Seq+uint32(off)-h.isn-1, s.Position)
	}
}
