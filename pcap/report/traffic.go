package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"jobwire/codec"
	"jobwire/pcap"
)

// Limits of the traffic counts that are kept.
const (
	pageSlots   = 128  // time slots
	trafficMost = 2000 // connections
	firstSlot   = 1e4  // nanoseconds
)

// traffic counts messages by connection and time slot. The slots become longer as the capture continues.
type traffic struct {
	slot  int64 // nanoseconds
	last  int   // slot of the last message
	conns map[int]*flow
	left  int // connections that are not counted because there are too many
}

// flow is the traffic of a connection.
type flow struct {
	id     int
	role   string
	peer   string
	counts [2][pageSlots]uint32
	total  [2]int
}

// add counts a message in the time slot of its arrival. from is the time of the first packet in nanoseconds. If the
// message is later than the last slot, add makes all slots twice as long until it is not.
func (t *traffic) add(it *pcap.Item, from int64) {
	if it.Kind > pcap.Violates {
		return
	}
	if t.conns == nil {
		t.conns, t.slot = map[int]*flow{}, firstSlot
	}
	f := t.conns[it.Conn.ID]
	if f == nil {
		if len(t.conns) >= trafficMost {
			if it.Conn.Last == 0 { // its first message
				t.left++
			}
			return
		}
		f = &flow{id: it.Conn.ID, peer: it.Conn.Peer.String()}
		t.conns[it.Conn.ID] = f
	}
	f.role = it.Conn.Protocol.RoleNames(it.Conn.Role & -it.Conn.Role)
	i := max(0, it.At-from) / t.slot
	for ; i >= pageSlots; i /= 2 {
		t.widen()
	}
	t.last = max(t.last, int(i))
	f.counts[it.From][i]++
	f.total[it.From]++
}

// widen merges each pair of adjacent slots into one.
func (t *traffic) widen() {
	t.slot *= 2
	t.last /= 2
	for _, f := range t.conns {
		for side := range f.counts {
			c := &f.counts[side]
			for i := range c {
				n := uint32(0)
				if 2*i < len(c) {
					n = c[2*i] + c[2*i+1]
				}
				c[i] = n
			}
		}
	}
}

// rows returns the rows of the connections with the most messages, ordered by connection ID.
func (t *traffic) rows() ([]pageConn, int) {
	var all []*flow
	for _, f := range t.conns {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *flow) int {
		return cmp.Or(b.total[0]+b.total[1]-a.total[0]-a.total[1], a.id-b.id)
	})
	all, left := first(all, pageConns)
	slices.SortFunc(all, func(a, b *flow) int { return a.id - b.id })
	most := uint32(1)
	for _, f := range all {
		for side := range f.counts {
			most = max(most, slices.Max(f.counts[side][:]))
		}
	}
	var rows []pageConn
	for _, f := range all {
		row := pageConn{ID: f.id, Role: f.role, Peer: f.peer, Up: f.total[codec.Peer], Down: f.total[codec.Server]}
		for side, class := range []string{"up", "down"} {
			for i, n := range f.counts[side][:t.last+1] {
				if n > 0 {
					height := 15 + 85*math.Log1p(float64(n))/math.Log1p(float64(most))
					row.Bars = append(row.Bars, pageBar{class, percent(int64(i), int64(t.last+1)),
						strconv.FormatFloat(height, 'f', 1, 64) + "%", fmt.Sprint(n)})
				}
			}
		}
		rows = append(rows, row)
	}
	return rows, left + t.left
}

// span returns the time that the rows cover, in nanoseconds.
func (t *traffic) span() int64 { return t.slot * int64(t.last+1) }
