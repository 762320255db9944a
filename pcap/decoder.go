package pcap

import (
	"errors"
	"io"
	"slices"

	"jobwire/codec"
)

// Bounds of memory. What exceeds them is given up, and counted.
const (
	maxMessage  = 17 << 20 // bytes of one message: a workload of 16 MiB fits with what stands before it
	maxBuffered = 24 << 20 // bytes of all messages that are not there as a whole
	keptBuffer  = 64 << 10 // bytes of a buffer that is kept for other messages
	maxSpare    = 16       // buffers that are kept
)

// Options say what is read in a capture.
type Options struct {
	Ports    []uint16        // only connections that have one of these ports, and its end is the server; nil is all
	Protocol *codec.Protocol // of all connections; nil is recognized for each
	Audit    bool            // messages are also judged by what went before them, on all connections of their server
	Filter   *Filter         // only what it chooses is handed on, though all is counted in Stats; nil is all
}

// Stats count what a decoder has seen.
type Stats struct {
	Packets            int
	Dropped            int   // packets that passed, and were not captured
	Bytes              int64 // captured of them
	Segments           int   // packets that are TCP
	Damaged            int   // packets whose headers make no sense
	UnknownLinks       int   // packets of a link that is not known here
	Duplicates         int   // segments that held nothing new
	StreamBytes        int64 // of data, each counted once
	Connections        int   // that carried data
	Unknown            int   // of them, in no protocol that is known here
	Gaps               int   // places where data is missing
	CutPackets         int   // packets of which only the beginning was captured
	Missing            int64 // bytes missing in both
	Truncated          int   // messages of which a part is missing
	Skipped            int64 // bytes in which the beginning of a message is not proved
	SkippedConnections int   // that have such bytes
	GivenUp            int   // messages and connections that were too much to remember
	Violations         int
}

// Decoder reads the conversations in a capture, packet by packet. Its memory is
// bounded, whatever arrives.
type Decoder struct {
	opts   Options
	handle func(*Item)
	stats  Stats
	rules  map[codec.RuleID]int

	unwrap unwrapper
	seg    segment
	conns  map[connKey]*Conn
	known  map[endpoint]*codec.Protocol // of servers
	sweep  int                          // number of connections at which those that are closed are forgotten
	last   *Conn                        // of the segment before
	spare  [][]byte                     // buffers for messages
	frame  codec.Frame
	item   Item

	heldBytes, buffered int
	number              int   // of the last packet
	at                  int64 // its time
}

// NewDecoder returns a decoder that hands all that it reads to handle, which
// must not keep what it is given.
func NewDecoder(o Options, handle func(*Item)) *Decoder {
	if f := o.Filter; f != nil {
		all := handle
		handle = func(it *Item) {
			if f.Match(it) {
				all(it)
			}
		}
	}
	d := &Decoder{opts: o, handle: handle, rules: map[codec.RuleID]int{}, conns: map[connKey]*Conn{}, known: map[endpoint]*codec.Protocol{}, sweep: minSweep}
	if o.Audit {
		d.handle = newAuditor(d, handle).add
	}
	return d
}

// Packet reads the next packet.
func (d *Decoder) Packet(p *Packet) {
	d.stats.Packets++
	d.stats.Bytes += int64(len(p.Data))
	d.number, d.at = p.Number, p.At
	if d.opts.Filter != nil {
		d.opts.Filter.begin(p.At)
	}
	switch d.unwrap.segment(p, &d.seg) {
	case isSegment:
		d.stats.Segments++
	case broken:
		d.stats.Damaged++
		return
	case unknownLink:
		d.stats.UnknownLinks++
		return
	default:
		return
	}
	if c, end := d.connection(&d.seg); c != nil {
		d.segment(c, end, &d.seg)
	}
}

// Close reads what still waits for packets that do not come. It is called at the
// end of the capture.
func (d *Decoder) Close() {
	for _, c := range d.open() {
		d.end(c, d.number, d.at)
	}
}

// open lists the connections that are not closed in the order of their packets.
func (d *Decoder) open() []*Conn {
	var all []*Conn
	for _, c := range d.conns {
		if !c.closed || c.unfinished() {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, earlier)
	return all
}

// earlier orders connections by when they began.
func earlier(a, b *Conn) int {
	if a.ID != b.ID {
		return a.ID - b.ID
	}
	return a.used - b.used
}

// unfinished reports whether something of a connection has not been handed on.
func (c *Conn) unfinished() bool {
	return c.search != nil || len(c.held)+len(c.early)+len(c.half[0].buf)+len(c.half[1].buf) > 0
}

// Stats returns what was counted so far.
func (d *Decoder) Stats() Stats { return d.stats }

// Rules counts violations by the rule that was broken.
func (d *Decoder) Rules() map[codec.RuleID]int { return d.rules }

// Decode reads all packets of a source, and what still waits at its end. The error is
// that of the source; what stands before it has been read.
func (d *Decoder) Decode(src Source) error {
	var p Packet
	for {
		err := src.Next(&p)
		if err != nil {
			d.Close()
			d.stats.Dropped = src.Dropped()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		d.Packet(&p)
	}
}
