package pcap

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"

	"jobwire/codec"
	"jobwire/judge"
	"jobwire/pcap/decrypt"
)

// Memory limits. The decoder discards and counts data that exceeds them.
const (
	maxMessage  = 17 << 20 // bytes of one message: a workload of 16 MiB and the fields before it
	maxBuffered = 24 << 20 // bytes of all incomplete messages
	keptBuffer  = 64 << 10 // maximum capacity in bytes of a buffer that is reused
	maxSpare    = 16       // number of buffers kept for reuse
)

// Options select what is decoded.
type Options struct {
	// decode only connections with one of these ports, which are ports of servers; nil: all connections
	Ports    []uint16
	Protocol *codec.Protocol // protocol of all connections; nil: recognized for each connection
	Audit    bool            // also check messages against the previous messages on all connections of their server
	Check    bool            // like Audit, but only count these violations: the messages are passed on as valid ones
	Likely   bool            // pass on likely messages, too
	Filter   *Filter         // pass on only the items that the filter selects (Stats count all items); nil: all
	// secrets of TLS connections, to which those in the capture are added; nil: only those in the capture
	Keys *decrypt.Keys
}

// Stats count what a decoder has read.
type Stats struct {
	Packets       int            `json:"packets"`
	Dropped       int            `json:"dropped_packets"` // not captured
	Bytes         int64          `json:"-"`               // captured bytes of the packets
	Segments      int            `json:"segments"`        // TCP packets
	Damaged       int            `json:"damaged_packets"` // number of packets with invalid headers
	UnknownLinks  int            `json:"unknown_link_packets"`
	NotUnderstood map[string]int `json:"not_understood,omitempty"` // packets by the header that is not understood
	Duplicates    int            `json:"duplicates"`               // segments without new data
	Conflicts     int            `json:"conflicting_segments"`     // retransmitted with other data than before
	StreamBytes   int64          `json:"stream_bytes"`             // data bytes, each counted once
	Connections   int            `json:"connections"`              // number of connections that carried data
	Unknown       int            `json:"unknown_connections"`      // whose protocol is unknown
	Gaps          int            `json:"gaps"`                     // places where data is missing
	CutPackets    int            `json:"cut_packets"`              // packets of which only the beginning was captured
	Missing       int64          `json:"missing_bytes"`            // in gaps and cut packets
	Truncated     int            `json:"truncated"`                // messages of which a part is missing
	// captured bytes of large messages that are not decoded
	Omitted int64 `json:"omitted_bytes"`
	// captured bytes in which no message boundary is proved
	Skipped            int64 `json:"skipped_bytes"`
	SkippedConnections int   `json:"skipped_connections"` // number of connections with skipped bytes
	// messages and connections that were discarded to limit memory
	GivenUp     int            `json:"given_up"`
	Messages    int            `json:"-"`               // messages, with those that violate a rule
	Likely      int            `json:"likely_messages"` // whose boundaries are not proved
	Violations  int            `json:"violations"`      // messages that violate a rule
	TLS         int            `json:"tls_connections"` // encrypted connections
	Decrypted   int            `json:"tls_decrypted"`
	Undecrypted map[string]int `json:"tls_not_decrypted,omitempty"` // connections by reason
}

// Decoder decodes the conversations in a capture, packet by packet. Its memory is limited for every input.
type Decoder struct {
	opts   Options
	handle func(*Item)
	stats  Stats
	rules  map[codec.RuleID]int

	unwrap unwrapper
	seg    segment
	conns  map[connKey]*Conn           // the last connection between two ends; Conn.sibling is the one before it
	count  int                         // number of connections
	known  map[service]*codec.Protocol // protocols of servers
	sweep  int                         // number of connections at which closed connections are forgotten
	last   *Conn                       // the connection of the previous segment
	recent recent                      // data to compare with retransmissions
	spare  [][]byte                    // buffers for messages
	frame  codec.Frame
	item   Item

	pendingBytes, buffered int
	number                 int   // number of the last packet
	at                     int64 // time of the last packet
}

// NewDecoder returns a decoder that passes all items to handle. handle must not keep an item; see [Item.Clone].
func NewDecoder(o Options, handle func(*Item)) *Decoder {
	if f := o.Filter; f != nil {
		all := handle
		handle = func(it *Item) {
			if f.Match(it) {
				all(it)
			}
		}
	}
	d := &Decoder{opts: o, handle: handle, rules: map[codec.RuleID]int{}, conns: map[connKey]*Conn{},
		known: map[service]*codec.Protocol{}, sweep: minSweep}
	if d.opts.Keys == nil {
		d.opts.Keys = &decrypt.Keys{}
	}
	if o.Audit || o.Check {
		d.handle = (&auditor{d: d, handle: handle, monitors: map[monitored]*judge.Monitor{}}).add
	}
	return d
}

// Packet decodes the next packet.
func (d *Decoder) Packet(p *Packet) {
	d.stats.Packets++
	d.stats.Bytes += int64(len(p.Data))
	d.number, d.at = p.Number, p.At
	if d.opts.Filter != nil {
		d.opts.Filter.begin(p.At)
	}
	d.opts.Keys.Add(p.Secrets)
	switch d.unwrap.segment(p, &d.seg) {
	case isSegment:
		d.stats.Segments++
	case broken:
		d.stats.Damaged++
		return
	case foreign:
		d.notUnderstood(d.unwrap.unknown)
		return
	default:
		return
	}
	if c, end := d.connection(&d.seg); c != nil {
		d.segment(c, end, &d.seg)
	}
}

// maxHeaders limits the number of headers that are named in [Stats].
const maxHeaders = 64

// notUnderstood counts a packet that is not decoded.
func (d *Decoder) notUnderstood(h header) {
	if h.layer == linkType {
		d.stats.UnknownLinks++
	}
	if d.stats.NotUnderstood == nil {
		d.stats.NotUnderstood = map[string]int{}
	}
	name := h.String()
	if d.stats.NotUnderstood[name] == 0 && len(d.stats.NotUnderstood) >= maxHeaders {
		name = "other headers"
	}
	d.stats.NotUnderstood[name]++
}

// Close decodes the data that waits for missing packets. Call it at the end of the capture.
func (d *Decoder) Close() {
	for _, c := range d.open() {
		d.end(c, d.number, d.at)
	}
}

// open returns the connections that are not closed or have data that was not passed on, in the order of their
// beginnings.
func (d *Decoder) open() []*Conn {
	var all []*Conn
	for c := range d.all {
		if !c.closed || c.unfinished() {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, earlier)
	return all
}

// earlier compares connections by the order in which they began.
func earlier(a, b *Conn) int { return cmp.Or(a.ID-b.ID, a.used-b.used) }

// unfinished reports whether some data of a connection was not passed on yet.
func (c *Conn) unfinished() bool {
	if c.half[0].large != nil || c.half[1].large != nil {
		return true
	}
	return c.search != nil || len(c.pending)+len(c.early)+len(c.half[0].buf)+len(c.half[1].buf) > 0
}

// Stats returns the counts so far.
func (d *Decoder) Stats() Stats {
	st := d.stats
	st.NotUnderstood = maps.Clone(st.NotUnderstood)
	return st
}

// Rules returns the number of violations of each rule.
func (d *Decoder) Rules() map[codec.RuleID]int { return d.rules }

// Decode decodes all packets of a source and then calls Close. It returns the error of the source. Everything
// before the error is decoded.
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
