package pcap_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"jobwire/internal/peers"
	"jobwire/pcap"
)

// encapsulation is a way in which an IPv4 packet can be within other headers. id is the number of the network, the
// tunnel or the session, if the headers have one; back is set for packets to the client.
type encapsulation struct {
	name string
	link uint32
	wrap func(p []byte, id uint32, back bool) []byte
	has  bool // the headers have an id
}

var machine = [2]net.HardwareAddr{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}

// within serializes layers with a packet.
func within(p []byte, around ...gopacket.SerializableLayer) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, append(around,
		gopacket.Payload(p))...); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func ether(t layers.EthernetType) gopacket.SerializableLayer {
	return &layers.Ethernet{SrcMAC: machine[0], DstMAC: machine[1], EthernetType: t}
}

// outer returns the IP and the Ethernet header around a tunnel.
func outer(p layers.IPProtocol, back bool) []gopacket.SerializableLayer {
	ends := [2]net.IP{{10, 9, 0, 1}, {10, 9, 0, 2}}
	if back {
		ends[0], ends[1] = ends[1], ends[0]
	}
	return []gopacket.SerializableLayer{ether(layers.EthernetTypeIPv4), &layers.IPv4{Version: 4, TTL: 64, Protocol: p,
		SrcIP: ends[0], DstIP: ends[1]}}
}

// udp returns the headers around a tunnel with UDP.
func udp(port layers.UDPPort, back bool, more ...gopacket.SerializableLayer) []gopacket.SerializableLayer {
	return append(append(outer(layers.IPProtocolUDP, back), &layers.UDP{SrcPort: 40000, DstPort: port}), more...)
}

// direction returns an ID that depends on the direction.
func direction(id uint32, back bool) uint32 {
	if back {
		return id + 0x4000
	}
	return id
}

// geneve returns a header of GENEVE.
func geneve(t uint16, id uint32, options ...byte) gopacket.Payload {
	b := binary.BigEndian.AppendUint16([]byte{byte(len(options) / 4), 0}, t)
	return append(binary.BigEndian.AppendUint32(b, id<<8), options...)
}

// attribute is a value in a message of Linux's netfilter log.
func attribute(order binary.AppendByteOrder, kind uint16, value []byte) []byte {
	b := order.AppendUint16(order.AppendUint16(nil, uint16(4+len(value))), kind)
	return append(append(b, value...), make([]byte, -len(value)&3)...)
}

func nflog(order binary.AppendByteOrder) func(p []byte, _ uint32, _ bool) []byte {
	return func(p []byte, _ uint32, _ bool) []byte {
		b := append([]byte{2, 0, 0, 7}, attribute(order, 1, []byte{8, 0, 1, 0})...)
		return append(append(b, attribute(order, 10, []byte("out\x00"))...), attribute(order, 9, p)...)
	}
}

var encapsulations = []encapsulation{
	{"NFLOG", 239, nflog(binary.LittleEndian), false},
	{"NFLOG, big-endian", 239, nflog(binary.BigEndian), false},
	{"PKTAP", 258, func(p []byte, _ uint32, _ bool) []byte {
		b := make([]byte, 108)
		b[0], b[4], b[8] = 108, 1, 1
		copy(b[12:], "en0")
		return append(b, within(p, ether(layers.EthernetTypeIPv4))...)
	}, false},
	{"PKTAP with raw IP", 258, func(p []byte, _ uint32, _ bool) []byte {
		b := make([]byte, 108)
		b[0], b[4], b[8] = 108, 1, 12
		return append(b, p...)
	}, false},
	{"PPP", 9, func(p []byte, _ uint32, _ bool) []byte { return append([]byte{0xff, 3, 0, 0x21}, p...) }, false},
	{"PPP, compressed header", 9, func(p []byte, _ uint32, _ bool) []byte { return append([]byte{0x21}, p...) }, false},
	{"PPP in HDLC", 50, func(p []byte, _ uint32, _ bool) []byte { return append([]byte{0xff, 3, 0, 0x21}, p...) },
		false},
	{"PPPoE without Ethernet", 51, func(p []byte, id uint32, _ bool) []byte {
		return within(p, &layers.PPPoE{Version: 1, Type: 1, SessionId: uint16(id)},
			&layers.PPP{PPPType: layers.PPPTypeIPv4})
	}, true},
	{"ATM", 100, func(p []byte, _ uint32, _ bool) []byte {
		return append([]byte("\xaa\xaa\x03\x00\x00\x00\x08\x00"), p...)
	}, false},
	{"C-HDLC", 104, func(p []byte, _ uint32, _ bool) []byte { return append([]byte{15, 0, 8, 0}, p...) }, false},
	{"ENC", 109, func(p []byte, _ uint32, _ bool) []byte {
		return append([]byte("\x02\x00\x00\x00\x00\x00\x10\x01\x00\x00\x00\x00"), p...)
	}, false},
	{"PFLOG", 117, func(p []byte, _ uint32, _ bool) []byte {
		return slices.Concat([]byte{61, 2}, make([]byte, 62),
			p)
	}, false},
	{"MPLS without Ethernet", 219, func(p []byte, id uint32, _ bool) []byte {
		return within(p, &layers.MPLS{Label: id, TTL: 64, StackBottom: true})
	}, true},
	{"LLC and SNAP", 1, func(p []byte, _ uint32, _ bool) []byte {
		return within(p, &layers.Ethernet{SrcMAC: machine[0], DstMAC: machine[1], Length: uint16(8 + len(p))},
			&layers.LLC{DSAP: 0xaa, SSAP: 0xaa, Control: 3},
			&layers.SNAP{OrganizationalCode: []byte{0, 0, 0}, Type: layers.EthernetTypeIPv4})
	}, false},
	{"LLC with IP", 1, func(p []byte, _ uint32, _ bool) []byte {
		return within(p, &layers.Ethernet{SrcMAC: machine[0], DstMAC: machine[1], Length: uint16(3 + len(p))},
			&layers.LLC{DSAP: 6, SSAP: 6, Control: 3})
	}, false},
	{"cooked capture with LLC and SNAP", 113, func(p []byte, _ uint32, _ bool) []byte {
		header := "\x00\x00\x00\x01\x00\x06\x02\x00\x00\x00\x00\x01\x00\x00\x00\x04"
		return slices.Concat([]byte(header+"\xaa\xaa\x03\x00\x00\x00\x08\x00"), p)
	}, false},
	{"VLAN", 1, func(p []byte, id uint32, _ bool) []byte {
		return within(p, ether(layers.EthernetTypeDot1Q), &layers.Dot1Q{VLANIdentifier: uint16(id),
			Type: layers.EthernetTypeIPv4})
	}, true},
	{"VLAN, another one in each direction", 1, func(p []byte, id uint32, back bool) []byte {
		if back {
			id += 100
		}
		return within(p, ether(layers.EthernetTypeDot1Q), &layers.Dot1Q{VLANIdentifier: uint16(id),
			Type: layers.EthernetTypeIPv4})
	}, true},
	{"VLAN in VLAN", 1, func(p []byte, id uint32, _ bool) []byte {
		return within(p, ether(layers.EthernetTypeQinQ), &layers.Dot1Q{VLANIdentifier: uint16(id),
			Type: layers.EthernetTypeDot1Q},
			&layers.Dot1Q{VLANIdentifier: 7, Type: layers.EthernetTypeIPv4})
	}, true},
	{"VLAN, LLC and SNAP", 1, func(p []byte, id uint32, _ bool) []byte {
		return within(append([]byte("\xaa\xaa\x03\x00\x00\x00\x08\x00"), p...), ether(layers.EthernetTypeDot1Q),
			&layers.Dot1Q{VLANIdentifier: uint16(id), Type: layers.EthernetType(8 + len(p))})
	}, true},
	{"PPPoE", 1, func(p []byte, id uint32, _ bool) []byte {
		return within(p, ether(layers.EthernetTypePPPoESession), &layers.PPPoE{Version: 1, Type: 1,
			SessionId: uint16(id)}, &layers.PPP{PPPType: layers.PPPTypeIPv4})
	}, true},
	{"MPLS", 1, func(p []byte, id uint32, back bool) []byte {
		return within(p, ether(layers.EthernetTypeMPLSUnicast), &layers.MPLS{Label: 16, TTL: 64},
			&layers.MPLS{Label: direction(id, back), TTL: 64, StackBottom: true})
	}, true},
	{"Ethernet in MPLS", 1, func(p []byte, id uint32, back bool) []byte {
		return within(append([]byte("\x00\x11\x22\x33\x44\x55\x00\x11\x22\x33\x44\x66\x08\x00"), p...),
			ether(layers.EthernetTypeMPLSUnicast),
			&layers.MPLS{Label: direction(id, back), TTL: 64, StackBottom: true})
	}, true},
	{"Ethernet in MPLS, control word", 1, func(p []byte, id uint32, back bool) []byte {
		return within(append([]byte("\x00\x00\x00\x00\x00\x11\x22\x33\x44\x55\x00\x11\x22\x33\x44\x66\x08\x00"), p...),
			ether(layers.EthernetTypeMPLSUnicast),
			&layers.MPLS{Label: direction(id, back), TTL: 64, StackBottom: true})
	}, true},
	{"provider backbone bridge", 1, func(p []byte, id uint32, _ bool) []byte {
		return within(append([]byte{0, 0, byte(id >> 8), byte(id)}, within(p, ether(layers.EthernetTypeIPv4))...),
			ether(0x88e7))
	}, true},
	{"GENEVE", 1, func(p []byte, id uint32, back bool) []byte {
		return within(p, append(udp(6081, back), geneve(0x6558, id, 0, 1, 2, 1, 9, 9, 9, 9),
			ether(layers.EthernetTypeIPv4))...)
	}, true},
	{"GENEVE with IP", 1, func(p []byte, id uint32, back bool) []byte {
		return within(p, udp(6081, back, geneve(0x0800, id))...)
	}, true},
	{"VXLAN", 1, func(p []byte, id uint32, back bool) []byte {
		return within(p, append(udp(4789, back), &layers.VXLAN{ValidIDFlag: true, VNI: id},
			ether(layers.EthernetTypeIPv4))...)
	}, true},
	{"VXLAN with Linux's port", 1, func(p []byte, id uint32, back bool) []byte {
		return within(p, append(udp(8472, back), &layers.VXLAN{ValidIDFlag: true, VNI: id},
			ether(layers.EthernetTypeIPv4))...)
	}, true},
	{"GTP-U", 1, func(p []byte, id uint32, back bool) []byte {
		return within(p, udp(2152, back, &layers.GTPv1U{Version: 1, ProtocolType: 1, MessageType: 255, TEID: direction(id,
			back), MessageLength: uint16(len(p))})...)
	}, true},
	{"GTP-U with extensions", 1, func(p []byte, id uint32, back bool) []byte {
		header := binary.BigEndian.AppendUint32([]byte{0x34, 255, 0, 0}, direction(id, back))
		binary.BigEndian.PutUint16(header[2:], uint16(len(p)+12))
		header = append(header, 0, 0, 0, 0x85, 1, 0, 0, 0x85, 1, 0, 1, 0)
		binary.BigEndian.PutUint16(header[2:], uint16(len(p)+len(header)-8))
		return within(append(header, p...), udp(2152, back)...)
	}, true},
	{"GRE", 1, func(p []byte, id uint32, back bool) []byte {
		return within(p, append(outer(layers.IPProtocolGRE, back), &layers.GRE{Protocol: layers.EthernetTypeIPv4,
			KeyPresent: true, Key: id})...)
	}, true},
	{"GRE with PPP", 1, func(p []byte, id uint32, back bool) []byte {
		b := binary.BigEndian.AppendUint16([]byte{0x30, 0x81, 0x88, 0x0b}, uint16(len(p)+4))
		b = binary.BigEndian.AppendUint16(b, uint16(direction(id, back)))
		b = append(b, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 3, 0, 0x21)
		return within(append(b, p...), outer(layers.IPProtocolGRE, back)...)
	}, true},
	{"MPLS in UDP", 1, func(p []byte, id uint32, back bool) []byte {
		return within(p, udp(6635, back, &layers.MPLS{Label: direction(id, back), TTL: 64, StackBottom: true})...)
	}, true},
	{"IP in IP", 1, func(p []byte, id uint32, back bool) []byte {
		around := outer(layers.IPProtocolIPv4, back)
		around[1].(*layers.IPv4).SrcIP[1] += byte(id)
		return within(p, around...)
	}, true},
	{"EtherIP", 1, func(p []byte, _ uint32, back bool) []byte {
		return within(append([]byte{0x30, 0}, within(p, ether(layers.EthernetTypeIPv4))...),
			outer(layers.IPProtocolEtherIP, back)...)
	}, false},
	{"ERSPAN I", 1, func(p []byte, _ uint32, _ bool) []byte {
		return within(p, append(outer(layers.IPProtocolGRE, false), &layers.GRE{Protocol: 0x88be},
			ether(layers.EthernetTypeIPv4))...)
	}, false},
	{"ERSPAN II", 1, func(p []byte, _ uint32, _ bool) []byte {
		return within(p, append(outer(layers.IPProtocolGRE, false), &layers.GRE{Protocol: 0x88be, SeqPresent: true},
			&layers.ERSPANII{Version: 1}, ether(layers.EthernetTypeIPv4))...)
	}, false},
	{"ERSPAN III", 1, func(p []byte, _ uint32, _ bool) []byte {
		header := []byte("\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
		return within(append(header, within(p, ether(layers.EthernetTypeIPv4))...), append(outer(layers.IPProtocolGRE,
			false), &layers.GRE{Protocol: 0x22eb, SeqPresent: true})...)
	}, false},
}

// wrapped returns packets within the headers of an encapsulation.
func (e *encapsulation) wrapped(packets [][]byte, id uint32) (all [][]byte) {
	for _, p := range packets {
		all = append(all, e.wrap(p, id, p[15] == 2))
	}
	return all
}

// interleaved alternates the elements of two lists of the same length.
func interleaved(a, b [][]byte) (all [][]byte) {
	for i := range a {
		all = append(all, a[i], b[i])
	}
	return all
}

// TestEncapsulations decodes a conversation within the headers of each encapsulation. If the headers have an ID, two
// conversations with the same addresses, ports and sequence numbers but other IDs are two connections.
func TestEncapsulations(t *testing.T) {
	want, ip := conversation()
	for _, e := range encapsulations {
		file := func(packets [][]byte) []byte { return classic(binary.LittleEndian, 0xa1b2c3d4, e.link, packets) }
		got, _, err := decodeFile(file(e.wrapped(ip, 5)))
		if err != nil || !slices.Equal(got.messages, want) || got.stats.Connections != 1 ||
			len(got.stats.NotUnderstood) > 0 {
			t.Errorf("%s: %d messages, want %d; %+v; %v", e.name, len(got.messages), len(want), got.stats, err)
		}
		if !e.has {
			continue
		}
		got, _, _ = decodeFile(file(interleaved(e.wrapped(ip, 5), e.wrapped(ip, 6))))
		if len(got.messages) != 2*len(want) || got.stats.Connections != 2 ||
			got.stats.Skipped+int64(got.stats.Duplicates) > 0 {
			t.Errorf("%s, two networks: %d messages, want %d; %+v", e.name, len(got.messages), 2*len(want), got.stats)
		}
		got, _, err = decodeFile(excerptOf(t, 2, file(interleaved(e.wrapped(ip, 5), e.wrapped(ip, 6)))))
		if err != nil || len(got.messages) != len(want) || got.stats.Connections != 1 {
			t.Errorf("%s, packets of the second network: %d messages, want %d; %+v", e.name, len(got.messages), len(want),
				got.stats)
		}
	}
}

// excerptOf returns a capture with the packets of a connection.
func excerptOf(t *testing.T, id int, file []byte) []byte {
	x := pcap.NewExcerpt()
	d := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
		if it.Conn.ID == id {
			x.Add(it)
		}
	})
	var out bytes.Buffer
	f, err := pcap.NewFile("x", bytes.NewReader(file))
	if err == nil {
		err = d.Decode(f)
	}
	if err == nil {
		f, err = pcap.NewFile("x", bytes.NewReader(file))
	}
	if err == nil {
		_, err = x.Write(&out, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestEncapsulationsOfTshark checks that tshark, too, finds the TCP segments in packets with these headers.
func TestEncapsulationsOfTshark(t *testing.T) {
	path := peers.Need(t, "tshark")
	_, ip := conversation()
	ip = ip[:20]
	var file bytes.Buffer
	w, err := pcap.NewPacketWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	known := slices.DeleteFunc(slices.Clone(encapsulations), func(e encapsulation) bool {
		return e.link == 219 || strings.Contains(e.name,
			"big-endian") // tshark does not know the first, and assumes the byte order of its machine
	})
	for _, e := range known {
		for _, p := range e.wrapped(ip, 5) {
			if err := w.Write(&pcap.Packet{Link: e.link, Data: p, Length: len(p)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	name := filepath.Join(t.TempDir(), "x.pcapng")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), path, "-r", name, "-d", "udp.port==8472,vxlan", "-T", "fields", "-e",
		"tcp.port").Output()
	lines := strings.Split(string(out), "\n")
	if err != nil || len(lines) != len(known)*len(ip)+1 {
		t.Fatalf("tshark prints %d lines: %v", len(lines), err)
	}
	for i, line := range lines[:len(lines)-1] {
		if line != "40000,4730" && line != "4730,40000" {
			t.Errorf("%s: in packet %d, tshark finds the ports %q", known[i/len(ip)].name, i%len(ip), line)
		}
	}
}

// TestSamePacketTwice checks captures that have the packets of one connection with and without other headers: each
// packet twice, as a capture on several interfaces has them, or the packets of one direction in each form.
func TestSamePacketTwice(t *testing.T) {
	want, ip := conversation()
	for _, e := range encapsulations {
		if e.link != 1 {
			continue
		}
		plain := prefixed(strings.Repeat("\x02", 12)+"\x08\x00", ip)
		other := e.wrapped(ip, 5)
		mixed := slices.Clone(plain)
		for i, p := range ip {
			if p[15] == 2 {
				mixed[i] = other[i]
			}
		}
		for name, packets := range map[string][][]byte{"one direction": mixed,
			"twice": interleaved(other, plain), "twice, other order": interleaved(plain, other),
			"from the middle": interleaved(other, plain)[10:]} {
			got, _, _ := decodeFile(classic(binary.LittleEndian, 0xa1b2c3d4, 1, packets))
			whole := slices.Equal(got.messages, want) || name == "from the middle" && len(got.messages) > len(want)/2
			if !whole || got.stats.Connections != 1 || got.stats.Conflicts > 0 {
				t.Errorf("%s, %s: %d messages, want %d; %+v", e.name, name, len(got.messages), len(want), got.stats)
			}
		}
	}
}

// TestManyNetworks checks a capture with connections with the same addresses and ports in many networks.
func TestManyNetworks(t *testing.T) {
	want, ip := conversation()
	vlan := encapsulations[slices.IndexFunc(encapsulations, func(e encapsulation) bool { return e.name == "VLAN" })]
	for _, count := range []int{200, 300} {
		var all [][]byte
		for _, p := range ip {
			for id := range uint32(count) {
				all = append(all, vlan.wrap(p, id+1, p[15] == 2))
			}
		}
		got, _, err := decodeFile(classic(binary.LittleEndian, 0xa1b2c3d4, 1, all))
		if all := len(got.messages) == count*len(want); err != nil || all != (got.stats.GivenUp == 0) ||
			all != (count == 200) {
			t.Errorf("%d messages in %d networks, want %d each; %+v", len(got.messages), count, len(want), got.stats)
		}
	}
}

// TestHeadersThatAreNotUnderstood checks that each packet of a link type, an EtherType or another protocol that
// jobwire does not read is counted under its number, and named if gopacket knows its name.
func TestHeadersThatAreNotUnderstood(t *testing.T) {
	decode := func(link uint32, packets ...[]byte) pcap.Stats {
		d := pcap.NewDecoder(pcap.Options{}, func(*pcap.Item) {})
		for i, b := range packets {
			d.Packet(&pcap.Packet{Number: i + 1, Link: link, Data: b, Length: len(b)})
		}
		d.Close()
		return d.Stats()
	}
	_, ip := conversation()
	frame := within(ip[3], ether(layers.EthernetTypeIPv4))
	read := []uint32{0, 1, 9, 12, 14, 50, 51, 100, 101, 104, 108, 109, 113, 117, 219, 228, 229, 239, 258, 276}
	for link := range uint32(400) {
		st := decode(link, frame, frame)
		text := fmt.Sprint(st.NotUnderstood)
		switch known := slices.Contains(read, link); {
		case known && link != 258 && st.UnknownLinks != 0, !known && (st.UnknownLinks != 2 || !strings.HasPrefix(text,
			fmt.Sprintf("map[link type %d", link))):
			t.Errorf("link type %d: %s; %+v", link, text, st)
		case !known && link < 256 && layers.LinkType(link).String() != layers.LinkType(255).String() &&
			!strings.Contains(text, "("):
			t.Errorf("link type %d, %s, has no name: %s", link, layers.LinkType(link), text)
		}
	}
	ethers := []int{0x0800, 0x86dd, 0x6558, 0x8100, 0x88a8, 0x9100, 0x9200, 0x8864, 0x880b, 0x8847, 0x8848, 0x88e7,
		0x8926, 0x88be, 0x22eb,
		0x0806, 0x0842, 0x8035, 0x8809, 0x8863, 0x888e, 0x8892, 0x88a4, 0x88cc, 0x88e3, 0x88f7, 0x8902,
		0x9000} // the latter cannot contain TCP
	for n := range 1 << 16 {
		binary.BigEndian.PutUint16(frame[12:], uint16(n))
		counted := false
		for header := range decode(1, frame).NotUnderstood {
			counted = strings.HasPrefix(header, fmt.Sprintf("EtherType 0x%04x", n))
		}
		if counted != (n > 1500 && !slices.Contains(ethers, n)) {
			t.Errorf("EtherType %#x is counted: %v", n, counted)
		}
	}
	for _, c := range []struct {
		want   string
		packet []byte
	}{
		{"map[EtherType 0x88e5 (MACsec):1]", within(ip[3], ether(0x88e5))},
		{"map[EtherType 0x894f (NSH):1]", within(ip[3], ether(0x894f))},
		{"map[EtherType 0x4321:1]", within(ip[3], append(outer(layers.IPProtocolGRE, false),
			&layers.GRE{Protocol: 0x4321})...)},
		{"map[EtherType 0x4321:1]", within(ip[3], udp(6081, false, geneve(0x4321, 1))...)},
		{"map[EtherType 0x4321:1]", within(ip[3], ether(layers.EthernetTypeDot1Q), &layers.Dot1Q{VLANIdentifier: 5,
			Type: 0x4321})},
		{"map[IP protocol 50 (ESP):1]", within(ip[3], outer(layers.IPProtocolESP, false)...)},
		{"map[PPP protocol 0x00fd (compressed):1]", within(append([]byte{0, 0xfd}, ip[3]...),
			ether(layers.EthernetTypePPPoESession), &layers.PPPoE{Version: 1, Type: 1})},
		{"map[GRE flags 0x4000:1]", within(append([]byte{0x40, 0, 8, 0}, ip[3]...), outer(layers.IPProtocolGRE, false)...)},
		{"map[link type 127 (IEEE802_11_RADIOTAP):1]", append([]byte("\x02\x00\x00\x00\x6c\x00\x00\x00\x7f"), make([]byte,
			110)...)},
		{"map[]", within(make([]byte, 28), ether(layers.EthernetTypeARP))},
		{"map[]", within([]byte("\x42\x42\x03"), ether(3))},
		{"map[]", within(append([]byte{0xc0, 0x21}, ip[3]...), ether(layers.EthernetTypePPPoESession),
			&layers.PPPoE{Version: 1, Type: 1})},
	} {
		link := uint32(1)
		if strings.Contains(c.want, "link") { // in PKTAP
			link, c.packet[0], c.packet[8], c.packet[4] = 258, 108, 127, 1
		}
		if got := fmt.Sprint(decode(link, c.packet).NotUnderstood); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
