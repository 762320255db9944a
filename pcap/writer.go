package pcap

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"jobwire/codec"
)

const (
	mss       = 1460                 // maximum data bytes in a segment
	window    = 65535                // announced by both ends
	ackEvery  = 2                    // segments that an end receives before it sends an acknowledgement
	firstPort = 40000                // client port of the first connection
	idle      = 1 * time.Millisecond // between events without a time
	tick      = 1 * time.Microsecond // between the packets of one event
)

// firstSeq are the first sequence numbers, by side. They are the same in every connection so that equal
// conversations produce equal files.
var firstSeq = [2]uint32{codec.Peer: 100_000_000, codec.Server: 200_000_000}

var loopback = net.IPv4(127, 0, 0, 1).To4()

// Writer writes events as a capture file: pcapng with nanoseconds, TCP over IPv4 over Ethernet, all on the
// loopback address. Every connection has its own client port, which limits a file to about 25000
// connections. The same events produce the same bytes.
//
// Times never decrease in a capture: an event that is older than the previous packet is written immediately
// after that packet.
type Writer struct {
	buf    *bufio.Writer
	out    *PacketWriter
	packet gopacket.SerializeBuffer
	port   layers.TCPPort // of the server
	next   int            // client port of the next connection
	ipID   uint16
	clock  time.Time // of the last packet
	begun  bool      // a packet has been written
	conns  map[int]*writerConn

	comments []string // of the next packet
}

// writerConn is a connection that is open in at least one direction.
type writerConn struct {
	port   layers.TCPPort // of the client
	seq    [2]uint32      // next sequence number, by side
	closed [2]bool        // the side has sent its FIN
	order  int
}

// NewWriter starts a capture of conversations with a server at the given TCP port. The writer buffers its
// output: the file is complete after [Writer.Close].
func NewWriter(w io.Writer, serverPort int) (*Writer, error) {
	if serverPort < 1 || serverPort > math.MaxUint16 {
		return nil, fmt.Errorf("pcap: expected a TCP port from 1 to 65535, got %d", serverPort)
	}
	buf := bufio.NewWriter(w)
	out, err := NewPacketWriter(buf)
	if err != nil {
		return nil, err
	}
	return &Writer{
		buf: buf, out: out, packet: gopacket.NewSerializeBuffer(),
		port: layers.TCPPort(serverPort), next: firstPort,
		clock: time.Unix(0, 0).Add(-tick), conns: map[int]*writerConn{},
	}, nil
}

// Write adds an event. A connection opens with its first event, and is forgotten once it is closed in both
// directions or reset. Then only Opens or Data may use its number again, for a new connection. Data after the
// sender has closed its direction is an error.
func (w *Writer) Write(e Event) error {
	w.advance(e.At)
	c := w.conns[e.Conn]
	switch {
	case e.From > codec.Server:
		return fmt.Errorf("pcap: connection %d: invalid side %d", e.Conn, e.From)
	case c != nil && e.Kind == Opens:
		return fmt.Errorf("pcap: connection %d is already open", e.Conn)
	case c == nil && e.Kind != Opens && e.Kind != Data:
		return fmt.Errorf("pcap: connection %d is not open: %v", e.Conn, e.Kind)
	case c != nil && c.closed[e.From] && e.Kind != Resets && e.Kind != Closes:
		return fmt.Errorf("pcap: connection %d: %v after the %s closed the connection", e.Conn, e.Kind, e.From)
	}
	if c == nil {
		var err error
		if e.Kind == Opens {
			w.comments = e.Comments
		}
		if c, err = w.open(e.Conn); err != nil {
			return err
		}
	}
	w.comments = e.Comments
	switch e.Kind {
	case Opens:
		return nil
	case Data:
		return w.data(c, e.From, e.Data)
	case HalfCloses:
		if err := w.finish(c, e.From); err != nil {
			return err
		}
	case Closes:
		for _, side := range [...]codec.Side{e.From, e.From.Other()} {
			if err := w.finish(c, side); err != nil {
				return err
			}
		}
	case Resets:
		c.closed = [2]bool{true, true}
		if err := w.segment(c, e.From, layers.TCP{RST: true, ACK: true}, nil); err != nil {
			return err
		}
	default:
		return fmt.Errorf("pcap: connection %d: invalid event %v", e.Conn, e.Kind)
	}
	if c.closed[codec.Peer] && c.closed[codec.Server] {
		delete(w.conns, e.Conn)
	}
	return nil
}

// Close closes the connections that are still open from the client's end, in the order in which they were
// opened, and flushes the buffer. It does not close the underlying writer.
func (w *Writer) Close() error {
	var open []int
	for id := range w.conns {
		open = append(open, id)
	}
	slices.SortFunc(open, func(a, b int) int { return w.conns[a].order - w.conns[b].order })
	for _, id := range open {
		if err := w.Write(Event{Conn: id, From: codec.Peer, Kind: Closes}); err != nil {
			return err
		}
	}
	if err := w.buf.Flush(); err != nil {
		return fmt.Errorf("pcap: %w", err)
	}
	return nil
}

// advance sets the clock to the time of an event's first packet.
func (w *Writer) advance(at time.Time) {
	if at.IsZero() {
		if w.begun {
			w.clock = w.clock.Add(idle - tick)
		}
		return
	}
	if !w.begun || at.After(w.clock) {
		w.clock = at.Add(-tick)
	}
}

// open writes the handshake.
func (w *Writer) open(id int) (*writerConn, error) {
	if w.next == int(w.port) {
		w.next++
	}
	if w.next > math.MaxUint16 {
		return nil, fmt.Errorf("pcap: connection %d: all client ports are in use", id)
	}
	c := &writerConn{port: layers.TCPPort(w.next), seq: firstSeq, order: w.next}
	w.next++
	w.conns[id] = c
	offer := []layers.TCPOption{{OptionType: layers.TCPOptionKindMSS, OptionLength: 4,
		OptionData: []byte{mss >> 8, mss & 0xff}}}
	if err := w.segment(c, codec.Peer, layers.TCP{SYN: true, Options: offer}, nil); err != nil {
		return nil, err
	}
	c.seq[codec.Peer]++
	if err := w.segment(c, codec.Server, layers.TCP{SYN: true, ACK: true, Options: offer}, nil); err != nil {
		return nil, err
	}
	c.seq[codec.Server]++
	return c, w.acknowledge(c, codec.Peer)
}

// data writes b in segments, which the other end acknowledges.
func (w *Writer) data(c *writerConn, from codec.Side, b []byte) error {
	for n := 1; len(b) > 0; n++ {
		part := b[:min(len(b), mss)]
		b = b[len(part):]
		if err := w.segment(c, from, layers.TCP{ACK: true, PSH: len(b) == 0}, part); err != nil {
			return err
		}
		c.seq[from] += uint32(len(part))
		if n%ackEvery == 0 || len(b) == 0 {
			if err := w.acknowledge(c, from.Other()); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish closes one direction, unless it is already closed.
func (w *Writer) finish(c *writerConn, from codec.Side) error {
	if c.closed[from] {
		return nil
	}
	c.closed[from] = true
	if err := w.segment(c, from, layers.TCP{FIN: true, ACK: true}, nil); err != nil {
		return err
	}
	c.seq[from]++
	return w.acknowledge(c, from.Other())
}

func (w *Writer) acknowledge(c *writerConn, from codec.Side) error {
	return w.segment(c, from, layers.TCP{ACK: true}, nil)
}

// segment writes one packet. tcp contains its flags and options; segment sets the other fields.
func (w *Writer) segment(c *writerConn, from codec.Side, tcp layers.TCP, data []byte) error {
	tcp.SrcPort, tcp.DstPort = c.port, w.port
	if from == codec.Server {
		tcp.SrcPort, tcp.DstPort = w.port, c.port
	}
	tcp.Seq, tcp.Window = c.seq[from], window
	if tcp.ACK {
		tcp.Ack = c.seq[from.Other()]
	}
	w.ipID++
	ip := layers.IPv4{
		Version: 4, TTL: 64, Id: w.ipID, Flags: layers.IPv4DontFragment,
		Protocol: layers.IPProtocolTCP, SrcIP: loopback, DstIP: loopback,
	}
	// The loopback interface has no hardware addresses, so they are zero.
	eth := layers.Ethernet{SrcMAC: make(net.HardwareAddr, 6), DstMAC: make(net.HardwareAddr, 6),
		EthernetType: layers.EthernetTypeIPv4}
	if err := tcp.SetNetworkLayerForChecksum(&ip); err != nil {
		return fmt.Errorf("pcap: %w", err)
	}
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(w.packet, opts, &eth, &ip, &tcp, gopacket.Payload(data)); err != nil {
		return fmt.Errorf("pcap: %w", err)
	}
	w.clock, w.begun = w.clock.Add(tick), true
	raw := w.packet.Bytes()
	comments := w.comments
	w.comments = nil
	return w.out.Write(&Packet{At: w.clock.UnixNano(), Digits: nanoDigits, Link: uint32(layers.LinkTypeEthernet),
		Data: raw, Length: len(raw)}, comments...)
}
