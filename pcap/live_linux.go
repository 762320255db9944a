package pcap

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// anyInterface is the name for all interfaces.
const anyInterface = "any"

// The ring that the kernel shares with a live capture consists of blocks, which have a header and packets.
const (
	liveBlocks = 64
	liveBlock  = 256 << 10 // bytes; longer packets are truncated

	// liveRetire is the time after which the kernel passes on a block that is not full. At low rates, the ring has
	// room for the packets of liveBlocks times this time.
	liveRetire = 50 * time.Millisecond

	// liveGrace is how long a capture whose context has ended waits for the last block at most.
	liveGrace = time.Second

	sll2Header = 20
	vlanTag    = 4
	linkSLL2   = 276
)

// live reads packets from an interface until its context ends. On the loopback device, which passes each packet
// twice, outgoing and incoming, it reads only incoming packets. Packets are available up to 50 ms after they arrived.
type live struct {
	file    *os.File
	raw     syscall.RawConn
	name    string
	ring    []byte
	block   int  // index of the current block
	left    int  // packets of the current block that Next has not returned
	packet  int  // offset of the next packet in the ring
	used    bool // the current block is to be returned to the kernel
	idle    func()
	count   int
	dropped int
	end     int64 // time in Unix nanoseconds at which the context ended, or 0
	failed  error
}

// openLive starts to read from an interface; see [OpenInterface]. The packets of all link types have a header of type
// LINKTYPE_LINUX_SLL2.
func openLive(ctx context.Context, name string, ports ...uint16) (*live, error) {
	index := 0
	if name != anyInterface {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return nil, fmt.Errorf("no interface named %q; expected one of %s", name, strings.Join(interfaces(), ", "))
		}
		index = i.Index
	}
	l, err := listen(name, index, ports)
	if errors.Is(err, unix.EPERM) {
		return nil, fmt.Errorf("%s: capturing on an interface requires CAP_NET_RAW. Run jobwire as root, or grant it: "+
			"sudo setcap cap_net_raw+ep $(command -v jobwire), or capture with tcpdump: sudo tcpdump -i %s -U -w - | jobwire decode -", name, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	context.AfterFunc(ctx, func() { l.file.SetReadDeadline(time.Unix(1, 0)) })
	return l, nil
}

// interfaces returns the names that a live capture accepts: "any" and the network interfaces of the machine.
func interfaces() []string {
	names := []string{anyInterface}
	all, _ := net.Interfaces()
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

// listen opens a packet socket with a ring for the interface with an index, or for all interfaces if it is 0. The
// kernel drops the packets that setFilter excludes.
func listen(name string, index int, ports []uint16) (*live, error) {
	// The socket is bound before its protocol is set, so that it receives no packets of other interfaces.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	ring, err := openRing(fd)
	if err == nil {
		err = setFilter(fd, ports)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ntohs(unix.ETH_P_ALL), Ifindex: index})
	}
	if err != nil {
		unix.Munmap(ring)
		unix.Close(fd)
		return nil, err
	}
	l := &live{file: os.NewFile(uintptr(fd), name), name: name, ring: ring}
	l.raw, err = l.file.SyscallConn()
	return l, err
}

// openRing makes a packet socket write packets to a ring, and maps the ring into memory.
func openRing(fd int) ([]byte, error) {
	err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3)
	if err == nil { // room in front of each packet for headers that the kernel does not write
		err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_RESERVE, sll2Header+vlanTag)
	}
	if err == nil {
		err = unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &unix.TpacketReq3{
			Block_size: liveBlock, Block_nr: liveBlocks,
			Frame_size: liveBlock, Frame_nr: liveBlocks, // the kernel requires a fixed size here but does not use it
			Retire_blk_tov: uint32(liveRetire.Milliseconds()),
		})
	}
	if err != nil {
		return nil, err
	}
	return unix.Mmap(fd, 0, liveBlocks*liveBlock, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// ntohs converts a number from network byte order, or to it.
func ntohs(n uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], n)
	return binary.BigEndian.Uint16(b[:])
}

// OnIdle sets a function that is called whenever no packet is available.
func (l *live) OnIdle(f func()) { l.idle = f }

// Dropped returns the number of packets that the kernel dropped because they were not read in time.
func (l *live) Dropped() int {
	l.raw.Control(func(fd uintptr) {
		if st, err := unix.GetsockoptTpacketStatsV3(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			l.dropped += int(st.Drops) // since the previous call
		}
	})
	return l.dropped
}

// Close stops the capture. It must not be called during Next.
func (l *live) Close() error {
	l.failed = os.ErrClosed
	unix.Munmap(l.ring)
	return l.file.Close()
}

// Next waits for the next packet and reads it into p. After the context has ended, it reads the packets that
// arrived before, and then returns [io.EOF].
func (l *live) Next(p *Packet) error {
	for l.left == 0 && l.failed == nil {
		if l.used {
			atomic.StoreUint32(&l.header().Block_status, unix.TP_STATUS_KERNEL)
			l.block = (l.block + 1) % liveBlocks
			l.used = false
		}
		if err := l.wait(); err == io.EOF {
			l.failed = err
		} else if err != nil {
			l.failed = fmt.Errorf("%s: %w", l.name, err)
		}
	}
	if l.failed != nil {
		return l.failed
	}
	next := readFrame(l.ring[l.packet:], p)
	l.left--
	l.packet += next
	if l.end > 0 && p.At > l.end {
		l.failed = io.EOF
		return l.failed
	}
	l.count++
	p.Number = l.count
	return nil
}

// header returns the header of the current block. The kernel may change it at any time until it sets the status.
func (l *live) header() *unix.TpacketHdrV1 {
	d := (*unix.TpacketBlockDesc)(unsafe.Pointer(&l.ring[l.block*liveBlock]))
	return (*unix.TpacketHdrV1)(unsafe.Pointer(&d.Hdr))
}

// wait waits until the kernel passes on the current block. It returns [io.EOF] if the context has ended and the block
// is empty.
func (l *live) wait() error {
	h := l.header()
	var failed error
	err := l.raw.Read(func(fd uintptr) bool {
		if atomic.LoadUint32(&h.Block_status)&unix.TP_STATUS_USER != 0 {
			l.used = true
			l.left, l.packet = int(h.Num_pkts), l.block*liveBlock+int(h.Offset_to_first_pkt)
			return true
		}
		if l.end > 0 && atomic.LoadUint32(&h.Num_pkts) == 0 {
			failed = io.EOF
			return true
		}
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && n != 0 {
			failed = syscall.Errno(n)
			return true
		}
		if l.idle != nil {
			l.idle()
		}
		return false
	})
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return cmp.Or(err, failed)
	case l.end > 0:
		return io.EOF
	}
	l.end = time.Now().UnixNano()
	l.file.SetReadDeadline(time.Now().Add(liveGrace))
	return nil
}

// readFrame reads the packet at the beginning of b, which is a part of the ring, into p. It writes the link header, and
// the VLAN tag if the kernel has removed one, to the space in front of the packet. It returns the offset of the next
// packet.
func readFrame(b []byte, p *Packet) (next int) {
	h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&b[0]))
	from := (*unix.RawSockaddrLinklayer)(unsafe.Pointer(&b[unix.SizeofTpacket3Hdr]))
	protocol, start, end := ntohs(from.Protocol), int(h.Mac)-sll2Header, int(h.Mac)+int(h.Snaplen)
	if h.Status&unix.TP_STATUS_VLAN_VALID != 0 {
		start -= vlanTag
		tag := b[start+sll2Header:]
		binary.BigEndian.PutUint16(tag, uint16(h.Hv1.Vlan_tci))
		binary.BigEndian.PutUint16(tag[2:], protocol)
		protocol = unix.ETH_P_8021Q
		if h.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
			protocol = h.Hv1.Vlan_tpid
		}
	}
	link := b[start : start+sll2Header]
	clear(link)
	binary.BigEndian.PutUint16(link, protocol)
	binary.BigEndian.PutUint32(link[4:], uint32(from.Ifindex))
	binary.BigEndian.PutUint16(link[8:], from.Hatype)
	link[10], link[11] = from.Pkttype, from.Halen
	copy(link[12:], from.Addr[:])
	p.At, p.Digits = int64(h.Sec)*1e9+int64(h.Nsec), nanoDigits
	p.Link, p.Data, p.Length = linkSLL2, b[start:end:end], int(h.Mac)-start+int(h.Len)
	return int(h.Next_offset)
}
