package pcap

import (
	"math"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// maxFiltered limits the number of ports in the kernel filter, because the kernel limits the size of a filter.
const maxFiltered = 100

// incoming returns instructions that drop the outgoing copy of each packet on the loopback device. They do not
// end the program for other packets.
func incoming() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtLinkLayerType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.ARPHRD_LOOPBACK, SkipTrue: 3},
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
	}
}

// portFilter returns a BPF program that drops TCP segments of other ports. Packets that it does not parse, such
// as fragments and tunnels, pass, and if there are no ports or more than maxFiltered, all packets do. A packet
// begins with its IP header.
func portFilter(ports []uint16) []bpf.Instruction {
	pass := bpf.RetConstant{Val: math.MaxUint32}
	if len(ports) == 0 || len(ports) > maxFiltered {
		return []bpf.Instruction{pass}
	}
	v6 := []bpf.Instruction{ // TCP without extension headers
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x60, SkipTrue: 1},
		pass,
		bpf.LoadAbsolute{Off: 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1},
		pass,
		bpf.LoadConstant{Dst: bpf.RegX, Val: 40},
	}
	v4 := []bpf.Instruction{ // TCP, not a fragment
		bpf.LoadAbsolute{Off: 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_TCP, SkipTrue: 1},
		pass,
		bpf.LoadAbsolute{Off: 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: 0x3fff, SkipTrue: 1},
		pass,
		bpf.LoadMemShift{Off: 0}, // X is the length of the IP header
		bpf.Jump{Skip: uint32(len(v6))},
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x40, SkipTrue: uint8(len(v4))},
	}
	program = append(append(program, v4...), v6...)
	for _, offset := range []uint32{0, 2} { // source and destination port
		program = append(program, bpf.LoadIndirect{Off: offset, Size: 2})
		for _, p := range ports {
			program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(p), SkipTrue: 1}, pass)
		}
	}
	return append(program, bpf.RetConstant{Val: 0})
}

// setFilter makes a packet socket drop the packets that [incoming] and [portFilter] drop.
func setFilter(fd int, ports []uint16) error {
	raw, err := bpf.Assemble(append(incoming(), portFilter(ports)...))
	if err != nil {
		return err
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}
