package pcap

import "golang.org/x/sys/unix"

// maxFiltered limits the number of ports in the kernel filter: a jump of the filter skips at most 255
// instructions.
const maxFiltered = 100

// portFilter returns a BPF program that drops TCP segments of other ports. Packets that it does not parse, such
// as fragments and tunnels, pass.
func portFilter(ports []uint16) []unix.SockFilter {
	const (
		load8, load16   = unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		load16X         = unix.BPF_LD | unix.BPF_H | unix.BPF_IND
		headerX, setX   = unix.BPF_LDX | unix.BPF_B | unix.BPF_MSH, unix.BPF_LDX | unix.BPF_IMM
		and             = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		ifEqual, ifBits = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		jump, ret       = unix.BPF_JMP | unix.BPF_JA, unix.BPF_RET | unix.BPF_K
	)
	const v4, v6, look = 4, 10, 13 // indices of the first instructions of the parts
	end := look + 2 + 2*len(ports) // the last instruction but one drops the packet, the last one passes it
	pass := end + 1
	var program []unix.SockFilter
	add := func(code uint16, k uint32, yes, no int) {
		at := len(program)
		program = append(program, unix.SockFilter{Code: code, K: k, Jt: uint8(yes - at - 1), Jf: uint8(no - at - 1)})
	}
	next := func() int { return len(program) + 1 }
	plain := func(code uint16, k uint32) { program = append(program, unix.SockFilter{Code: code, K: k}) }

	plain(load8, 0)
	plain(and, 0xf0)
	add(ifEqual, 0x40, v4, next())
	add(ifEqual, 0x60, v6, pass)
	// v4: TCP, not a fragment, and the length of the header
	plain(load8, 9)
	add(ifEqual, protoTCP, next(), pass)
	plain(load16, 6)
	add(ifBits, 0x3fff, pass, next())
	plain(headerX, 0)
	plain(jump, look-v6)
	// v6: TCP without extension headers
	plain(load8, 6)
	add(ifEqual, protoTCP, next(), pass)
	plain(setX, 40)
	for _, at := range [...]uint32{0, 2} { // either port
		plain(load16X, at)
		for _, p := range ports {
			add(ifEqual, uint32(p), pass, next())
		}
	}
	plain(ret, 0)
	plain(ret, 0xffffffff)
	return program
}
