package pcap

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Any is the name for all interfaces.
const Any = "any"

// Sizes of buffers of a live capture.
const (
	liveSocket = 8 << 20   // bytes in the kernel's receive buffer
	livePacket = 512 << 10 // bytes of a packet; longer packets are truncated
	sll2Header = 20

	// liveGrace allows for packets that arrived before the end of the capture but have later timestamps. The
	// first packets do, because the kernel starts to set timestamps with some delay.
	liveGrace = time.Second

	linkSLL2 = 276
)

// Live reads packets from an interface until its context ends. On the loopback device, which passes each packet
// twice, outgoing and incoming, it reads only incoming packets.
type Live struct {
	file    *os.File
	raw     syscall.RawConn
	name    string
	buf     []byte
	oob     [128]byte
	idle    func()
	count   int
	dropped int
	end     int64 // time in Unix nanoseconds at which the context ended, or 0
	failed  error
}

// OpenLive starts to read from an interface, or from all of them if the name is [Any]. It requires CAP_NET_RAW.
// The packets of all link types have a header of type LINKTYPE_LINUX_SLL2. If ports are given, most segments of
// other ports are dropped.
func OpenLive(ctx context.Context, name string, ports ...uint16) (*Live, error) {
	index := 0
	if name != Any {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return nil, fmt.Errorf("no interface named %q; expected one of %s", name, strings.Join(interfaces(), ", "))
		}
		index = i.Index
	}
	l, err := openLive(name, index, ports)
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

func interfaces() []string {
	names := []string{Any}
	all, _ := net.Interfaces()
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

func openLive(name string, index int, ports []uint16) (*Live, error) {
	// The socket is bound before its protocol is set, so that it receives no packets of other interfaces.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, liveSocket) != nil {
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, liveSocket)
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	if n := len(ports); err == nil && n > 0 && n <= maxFiltered {
		program := portFilter(ports)
		err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian(unix.ETH_P_ALL), Ifindex: index})
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	l := &Live{file: os.NewFile(uintptr(fd), name), name: name, buf: make([]byte, livePacket)}
	l.raw, err = l.file.SyscallConn()
	return l, err
}

// bigEndian returns the number whose bytes in memory are n in network byte order.
func bigEndian(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}

// OnIdle sets a function that is called whenever no packet is available.
func (l *Live) OnIdle(f func()) { l.idle = f }

// Dropped returns the number of packets that the kernel dropped because they were not read in time.
func (l *Live) Dropped() int {
	l.raw.Control(func(fd uintptr) {
		if st, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			l.dropped += int(st.Drops) // since the previous call
		}
	})
	return l.dropped
}

// Close stops the capture.
func (l *Live) Close() error { return l.file.Close() }

// Next waits for the next packet and reads it into p. After the context has ended, it reads the packets that
// arrived before, and then returns [io.EOF].
func (l *Live) Next(p *Packet) error {
	for l.failed == nil {
		got, err := l.poll(p)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && l.end == 0:
			l.end = time.Now().UnixNano()
		case err == unix.EINTR:
		case err == unix.EAGAIN, l.end > 0 && got && p.At > l.end+int64(liveGrace):
			l.failed = io.EOF
		case err != nil:
			l.failed = fmt.Errorf("%s: %w", l.name, err)
		case got:
			l.count++
			p.Number = l.count
			return nil
		}
	}
	return l.failed
}

// poll reads a packet, waits for it if necessary, and reports whether it is to be returned.
func (l *Live) poll(p *Packet) (got bool, err error) {
	if l.end > 0 {
		if cerr := l.raw.Control(func(fd uintptr) { got, err = l.receive(int(fd), p) }); cerr != nil {
			return false, cerr
		}
		return got, err
	}
	rerr := l.raw.Read(func(fd uintptr) bool {
		if got, err = l.receive(int(fd), p); err != unix.EAGAIN {
			return true
		}
		if l.idle != nil {
			l.idle()
		}
		return false
	})
	if rerr != nil {
		return false, rerr
	}
	return got, err
}

// receive reads a packet without waiting. It reports whether the packet is to be returned.
func (l *Live) receive(fd int, p *Packet) (bool, error) {
	n, oobn, _, from, err := unix.Recvmsg(fd, l.buf[sll2Header:], l.oob[:], unix.MSG_TRUNC)
	if err != nil {
		return false, err
	}
	link, ok := from.(*unix.SockaddrLinklayer)
	if !ok || link.Pkttype == unix.PACKET_OUTGOING && link.Hatype == unix.ARPHRD_LOOPBACK {
		return false, nil
	}
	binary.NativeEndian.PutUint16(l.buf, link.Protocol) // in network byte order
	p.Digits, p.Link, p.Length = nanoDigits, linkSLL2, sll2Header+n
	p.Data = l.buf[:min(p.Length, len(l.buf))]
	p.At = stamp(l.oob[:oobn])
	return true, nil
}

// stamp returns the time at which the kernel received a packet.
func stamp(oob []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err == nil {
		for _, m := range messages {
			if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_TIMESTAMPNS {
				continue
			}
			switch e := binary.NativeEndian; len(m.Data) {
			case 16:
				return int64(e.Uint64(m.Data))*1e9 + int64(e.Uint64(m.Data[8:]))
			case 8:
				return int64(e.Uint32(m.Data))*1e9 + int64(e.Uint32(m.Data[4:]))
			}
		}
	}
	return time.Now().UnixNano()
}
