// Command bigcapture writes a large capture of small jobs, to measure the speed of decoders. The same flags
// produce the same bytes. Every message is a separate segment that acknowledges the data before it, as in a
// conversation of one job at a time. Packets have the headers that Linux sends on Ethernet: 66 bytes.
package main

import (
	"bufio"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
)

// main parses the flags and writes the capture. It exits with status 1 if an argument is wrong or the file cannot be
// written.
func main() {
	size := flag.Int64("size", 300e6, "bytes that the capture has at least")
	protocol := flag.String("protocol", "gearman", "gearman, beanstalk or gearmonkey")
	lossy := flag.Bool("lossy", false, "leave out one segment of each direction of each connection")
	short := flag.Bool("short", false, "a new connection of the client and of the worker for each job")
	flag.Parse()
	err := fmt.Errorf("want one file to write, and a protocol: see -help")
	if traffic := protocols[*protocol]; flag.NArg() == 1 && traffic.cycle != nil {
		err = write(flag.Arg(0), *size, traffic, *lossy, *short)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bigcapture:", err)
		os.Exit(1)
	}
}

// write creates the capture file, with at least size bytes of traffic. The random numbers are always the same.
func write(name string, size int64, kind traffic, lossy, short bool) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(file, 1<<20)
	c := &capture{w: buffered, traffic: kind, lossy: lossy, short: short, random: rand.New(rand.NewPCG(7, 7))}
	c.perform(size)
	if err := buffered.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// Numbers of connections. The connections of clients come first, then those of workers.
const (
	clients = 192
	workers = 64
)

// The end that sends.
const (
	peer = iota
	server
)

// conn is a connection: the data that each end has sent, and the segments to leave out.
type conn struct {
	port     uint16 // of the connecting end
	sent     [2]uint32
	segments [2]int
	lost     [2]int // number of the segment that is left out
}

// capture is a pcap file that is being written.
type capture struct {
	traffic
	w      io.Writer
	lossy  bool
	short  bool
	random *rand.Rand
	conns  [clients + workers]conn
	opened int
	size   int64 // bytes written
	clock  uint64
	packet []byte
	err    error
}

// perform writes the conversation: cycles with one client and one worker each, until the capture is large
// enough.
func (c *capture) perform(size int64) {
	le := binary.LittleEndian
	head := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, 0xa1b2c3d4), 2), 4)
	c.write(le.AppendUint32(le.AppendUint32(append(head, make([]byte, 8)...), 262144), 1))
	for i := range c.conns {
		c.open(i)
	}
	for n := 0; c.size < size && c.err == nil; n++ {
		client, worker := n%clients, clients+n%workers
		for _, m := range c.cycle(n, c.random) {
			at := client
			if m.worker {
				at = worker
			}
			c.segment(at, m.from, m.data, ack|psh)
		}
		if c.short {
			for _, at := range [...]int{client, worker} {
				c.close(at)
				c.open(at)
			}
		}
	}
	for i := range c.conns {
		c.close(i)
	}
}

// open begins a connection from a port that has not been used for a long time. A worker registers its function.
func (c *capture) open(i int) {
	c.conns[i] = conn{port: uint16(1024 + c.opened%60000), lost: [2]int{1 + c.random.IntN(3), 1 + c.random.IntN(3)}}
	if !c.short {
		c.conns[i].lost = [2]int{10 + c.random.IntN(500), 10 + c.random.IntN(500)}
	}
	c.opened++
	c.segment(i, peer, nil, syn)
	c.segment(i, server, nil, syn|ack)
	if i >= clients && c.register != nil {
		c.segment(i, peer, c.register, ack|psh)
	}
}

func (c *capture) close(i int) {
	c.segment(i, peer, nil, fin|ack)
	c.segment(i, server, nil, fin|ack)
}

// TCP flags.
const (
	fin = 0x01
	syn = 0x02
	psh = 0x08
	ack = 0x10
)

// segment writes a segment of an end, with all of its headers.
func (c *capture) segment(i, from int, data []byte, flags byte) {
	k := &c.conns[i]
	ports, hosts := [2]uint16{k.port, c.port}, [2]byte{1 + byte(i>>6), 250}
	seq, other := k.sent[from], k.sent[1-from]
	k.sent[from] += uint32(len(data))
	if flags&(syn|fin) != 0 {
		k.sent[from]++
	}
	c.clock += 10 + c.random.Uint64N(40) // microseconds
	if len(data) > 0 {
		k.segments[from]++
		if c.lossy && k.segments[from] == k.lost[from] {
			return
		}
	}
	be := binary.BigEndian
	b := append(c.packet[:0], make([]byte, 16)...)
	b = append(b, 2, 0, 0, 0, 0, hosts[1-from], 2, 0, 0, 0, 0, hosts[from], 8, 0)
	b = be.AppendUint16(append(b, 0x45, 0), uint16(52+len(data)))
	b = append(b, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, hosts[from], 10, 0, 0, hosts[1-from])
	b = be.AppendUint16(be.AppendUint16(b, ports[from]), ports[1-from])
	b = be.AppendUint32(be.AppendUint32(b, 1e9+seq), (1e9+other)*uint32(flags/ack&1))
	b = append(b, 8<<4, flags, 0x20, 0, 0, 0, 0, 0, 1, 1, 8, 10) // with the timestamp option
	b = be.AppendUint32(be.AppendUint32(b, uint32(c.clock/1000)), uint32(c.clock/1000))
	b = append(b, data...)
	le, length := binary.LittleEndian, uint32(len(b)-16)
	le.PutUint32(b, uint32(1_700_000_000+c.clock/1e6))
	le.PutUint32(b[4:], uint32(c.clock%1e6))
	le.PutUint32(b[8:], length)
	le.PutUint32(b[12:], length)
	c.packet = b
	c.write(b)
}

func (c *capture) write(b []byte) {
	n, err := c.w.Write(b)
	c.size += int64(n)
	if c.err == nil {
		c.err = err
	}
}
