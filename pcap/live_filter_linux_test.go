package pcap

import (
	"encoding/binary"
	"net"
	"slices"
	"testing"
	"unsafe"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"jobwire/pcap/internal/headers"
)

// TestPortFilter runs the filter of a live capture on packets: segments of other ports must be dropped, and everything that
// may contain a segment of one of the ports must pass.
func TestPortFilter(t *testing.T) {
	addr := net.IP{127, 0, 0, 1}
	v4 := func(p layers.IPProtocol) *layers.IPv4 {
		return &layers.IPv4{Version: 4, TTL: 64, Protocol: p, SrcIP: addr, DstIP: addr}
	}
	v6 := func(p layers.IPProtocol) *layers.IPv6 {
		return &layers.IPv6{Version: 6, NextHeader: p, SrcIP: net.IPv6loopback, DstIP: net.IPv6loopback}
	}
	tcp := func(src, dst layers.TCPPort) *layers.TCP { return &layers.TCP{SrcPort: src, DstPort: dst} }
	options := v4(layers.IPProtocolTCP)
	options.Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1}, {OptionType: 0}}
	first, later := v4(layers.IPProtocolTCP), v4(layers.IPProtocolTCP)
	first.Flags, later.FragOffset = layers.IPv4MoreFragments, 100
	extension := gopacket.Payload{unix.IPPROTO_TCP, 0, 1, 4, 0, 0, 0, 0} // hop-by-hop options
	for _, tt := range []struct {
		name   string
		ports  []uint16
		layers []gopacket.SerializableLayer
		passes bool
	}{
		{"to the port", []uint16{4730}, []gopacket.SerializableLayer{v4(6), tcp(40000, 4730)}, true},
		{"from the port", []uint16{4730}, []gopacket.SerializableLayer{v4(6), tcp(4730, 40000)}, true},
		{"other ports", []uint16{4730}, []gopacket.SerializableLayer{v4(6), tcp(40000, 4731)}, false},
		{"the last of several ports", []uint16{1, 2, 4730}, []gopacket.SerializableLayer{v4(6), tcp(40000, 4730)}, true},
		{"none of several ports", []uint16{1, 2, 4730}, []gopacket.SerializableLayer{v4(6), tcp(3, 4)}, false},
		{"IP options", []uint16{4730}, []gopacket.SerializableLayer{options, tcp(4730, 1)}, true},
		{"IP options, other ports", []uint16{4730}, []gopacket.SerializableLayer{options, tcp(1, 2)}, false},
		{"first fragment", []uint16{4730}, []gopacket.SerializableLayer{first, tcp(1, 2)}, true},
		{"later fragment", []uint16{4730}, []gopacket.SerializableLayer{later, gopacket.Payload("text text text text text")}, true},
		{"IPv6", []uint16{4730}, []gopacket.SerializableLayer{v6(6), tcp(1, 4730)}, true},
		{"IPv6, other ports", []uint16{4730}, []gopacket.SerializableLayer{v6(6), tcp(1, 2)}, false},
		{"IPv6 extension header", []uint16{4730}, []gopacket.SerializableLayer{v6(0), extension, tcp(1, 2)}, true},
		{"UDP, which may be a tunnel", []uint16{4730}, []gopacket.SerializableLayer{v4(17), &layers.UDP{SrcPort: 1, DstPort: 4789}}, true},
		{"not IP", []uint16{4730}, []gopacket.SerializableLayer{gopacket.Payload{0, 1, 8, 0, 6, 4, 0, 1}}, true},
		{"no ports", nil, []gopacket.SerializableLayer{v4(6), tcp(1, 2)}, true},
		{"the maximum number of ports", slices.Repeat([]uint16{4730}, maxFiltered), []gopacket.SerializableLayer{v6(6), tcp(1, 2)}, false},
		{"more than the maximum number of ports", make([]uint16, maxFiltered+1), []gopacket.SerializableLayer{v4(6), tcp(1, 2)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			packet := gopacket.NewSerializeBuffer()
			if err := gopacket.SerializeLayers(packet, gopacket.SerializeOptions{FixLengths: true}, tt.layers...); err != nil {
				t.Fatal(err)
			}
			vm, err := bpf.NewVM(portFilter(tt.ports))
			if err != nil {
				t.Fatal(err)
			}
			n, err := vm.Run(packet.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if passes := n > 0; passes != tt.passes {
				t.Errorf("the packet passes: %v, want %v", passes, tt.passes)
			}
		})
	}
}

// TestReadFrame reads a packet whose VLAN tag the kernel has removed: the packet must have the tag again, and the length on
// the wire although only a part was captured.
func TestReadFrame(t *testing.T) {
	const mac, text = 120, "E\x00\x00(\x00\x00\x00\x00@\x06\x00\x00\x7f\x00\x00\x01\x7f\x00\x00\x01" + "\x00\x01\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00P\x10\x00\x00\x00\x00\x00\x00" // IPv4, TCP
	frame := make([]byte, mac+len(text))
	copy(frame[mac:], text)
	*(*unix.Tpacket3Hdr)(unsafe.Pointer(&frame[0])) = unix.Tpacket3Hdr{
		Next_offset: 256, Sec: 7, Nsec: 8, Snaplen: uint32(len(text)), Len: 1000, Mac: mac,
		Status: unix.TP_STATUS_USER | unix.TP_STATUS_VLAN_VALID | unix.TP_STATUS_VLAN_TPID_VALID,
		Hv1:    unix.TpacketHdrVariant1{Vlan_tci: 0x2005, Vlan_tpid: unix.ETH_P_8021AD},
	}
	*(*unix.RawSockaddrLinklayer)(unsafe.Pointer(&frame[unix.SizeofTpacket3Hdr])) = unix.RawSockaddrLinklayer{
		Protocol: ntohs(unix.ETH_P_IP), Ifindex: 3, Hatype: unix.ARPHRD_ETHER, Pkttype: unix.PACKET_OUTGOING, Halen: 6, Addr: [8]byte{1, 2, 3, 4, 5, 6},
	}
	var p Packet
	next := readFrame(frame, &p)
	want := binary.BigEndian.AppendUint32([]byte{0x88, 0xa8, 0, 0}, 3)
	want = append(want, 0, 1, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0)
	want = append(want, 0x20, 0x05, 0x08, 0x00)
	want = append(want, text...)
	if string(p.Data) != string(want) || p.Length != sll2Header+vlanTag+1000 || p.At != 7e9+8 || next != 256 {
		t.Errorf("%+v, next %d; want data % x", p, next, want)
	}
	var parser headers.Parser
	var s headers.Segment
	if v := parser.Parse(p.Link, p.Data, &s); v != headers.IsSegment || s.Dst.Port != 2 || s.Network == 0 {
		t.Errorf("%v, %+v: want the segment of a virtual network", v, s)
	}
}
