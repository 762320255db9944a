package pcap

import (
	"errors"
	"io"
	"maps"

	"jobwire/codec"
	"jobwire/judge"
	"jobwire/pcap/decrypt"
	"jobwire/pcap/internal/headers"
	"jobwire/pcap/internal/reassembly"
)

// Memory limits. The decoder discards and counts data that exceeds them.
const (
	maxMessage  = 17 << 20 // bytes of one message: a workload of 16 MiB and the fields before it
	maxBuffered = 24 << 20 // limit of Decoder.buffered
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
	PacketStats
	StreamStats
	MessageStats
	TLSStats
}

// PacketStats count packets.
type PacketStats struct {
	Packets       int            `json:"packets"`
	Dropped       int            `json:"dropped_packets"` // not captured
	Segments      int            `json:"segments"`        // TCP packets
	Damaged       int            `json:"damaged_packets"` // number of packets with invalid headers
	UnknownLinks  int            `json:"unknown_link_packets"`
	NotUnderstood map[string]int `json:"not_understood,omitempty"` // packets by the header that is not understood
}

// StreamStats count connections, their segments and bytes.
type StreamStats struct {
	Duplicates  int   `json:"duplicates"`           // segments without new data
	Conflicts   int   `json:"conflicting_segments"` // retransmitted with other data than before
	StreamBytes int64 `json:"stream_bytes"`         // data bytes, each counted once
	Connections int   `json:"connections"`          // number of connections that carried data
	Unknown     int   `json:"unknown_connections"`  // whose protocol is unknown
	Gaps        int   `json:"gaps"`                 // places where data is missing
	CutPackets  int   `json:"cut_packets"`          // packets of which only the beginning was captured
	Missing     int64 `json:"missing_bytes"`        // in gaps and cut packets
}

// MessageStats count messages, and the bytes that belong to no decoded message.
type MessageStats struct {
	Truncated          int   `json:"truncated"`           // messages of which a part is missing
	Omitted            int64 `json:"omitted_bytes"`       // captured bytes of large messages that are not decoded
	Skipped            int64 `json:"skipped_bytes"`       // captured bytes in which no message boundary is proved
	SkippedConnections int   `json:"skipped_connections"` // number of connections with skipped bytes
	GivenUp            int   `json:"given_up"`            // messages and connections that were discarded to limit memory
	Messages           int   `json:"-"`                   // messages, with those that violate a rule
	Likely             int   `json:"likely_messages"`     // whose boundaries are not proved
	Violations         int   `json:"violations"`          // messages that violate a rule
}

// TLSStats count encrypted connections.
type TLSStats struct {
	TLS         int            `json:"tls_connections"`
	Decrypted   int            `json:"tls_decrypted"`
	Undecrypted map[string]int `json:"tls_not_decrypted,omitempty"` // connections by reason
}

// Decoder decodes the conversations in a capture, packet by packet. Its memory is limited for every input.
type Decoder struct {
	opts   Options
	handle func(*Item)
	stats  Stats
	rules  map[codec.RuleID]int

	parser  headers.Parser
	streams reassembly.Assembler
	known   map[service]*codec.Protocol // protocols of servers

	spare    [][]byte           // buffers for messages
	buffered int                // bytes of all incomplete messages, and of data that waits for a decision
	segment  reassembly.Segment // the last segment, and the position of the last packet
	frame    codec.Frame
	item     Item
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
	d := &Decoder{opts: o, handle: handle, rules: map[codec.RuleID]int{}, known: map[service]*codec.Protocol{}}
	d.streams = reassembly.Assembler{Accept: d.accept, Ports: o.Ports}
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
	d.segment.Position = position{Frame: p.Number, At: p.At}
	if d.opts.Filter != nil {
		d.opts.Filter.begin(p.At)
	}
	d.opts.Keys.Add(p.Secrets)
	switch d.parser.Parse(p.Link, p.Data, &d.segment.Segment) {
	case headers.IsSegment:
		d.stats.Segments++
		d.streams.Add(&d.segment)
	case headers.Broken:
		d.stats.Damaged++
	case headers.Foreign:
		d.notUnderstood(d.parser.Unknown)
	}
}

// maxHeaders limits the number of headers that are named in [Stats].
const maxHeaders = 64

// notUnderstood counts a packet that is not decoded.
func (d *Decoder) notUnderstood(h headers.Header) {
	if h.IsLink() {
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
func (d *Decoder) Close() { d.streams.Close(d.segment.Position) }

// Stats returns the counts so far.
func (d *Decoder) Stats() Stats {
	st := d.stats
	st.Duplicates = d.streams.Duplicates
	st.GivenUp += d.streams.GivenUp
	st.NotUnderstood, st.Undecrypted = maps.Clone(st.NotUnderstood), st.undecrypted()
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
