package pcap

import (
	"bytes"

	"jobwire/codec"
	"jobwire/codec/danga"
)

// Bounds of what is looked at before a protocol is decided on.
const (
	maxEarly      = 1024     // segments
	maxEarlyBytes = 32 << 10 // bytes
)

// decide looks for the protocol of a connection, and reads what has come so far
// once it is found.
func (d *Decoder) decide(c *Conn, end int, b []byte, frame int, at int64) {
	if c.ID == 0 {
		d.stats.Connections++
		c.ID = d.stats.Connections
	}
	if len(c.early) == 0 && d.recognise(c, end, b) {
		d.read(c, end, b, frame, at)
		return
	}
	c.early = append(c.early, chunk{end: end, data: bytes.Clone(b), frame: frame, at: at})
	d.buffered += len(b)
	size := 0
	var all []byte // what this end has sent without a gap
	for i := range c.early {
		e := &c.early[i]
		size += len(e.data)
		if e.end == end {
			if all = append(all, e.data...); e.missing > 0 {
				all = all[:0]
			}
		}
	}
	found := d.recognise(c, end, all) || c.Uncertain && d.recognise(c, end, b)
	if !found && isDanga(c) {
		d.adopt(c, danga.Protocol)
		found = true
	}
	if found {
		d.replay(c)
	} else if len(c.early) > maxEarly || size > maxEarlyBytes || d.buffered > maxBuffered {
		d.giveUpDeciding(c)
	}
}

// replay reads what came before the protocol was decided.
func (d *Decoder) replay(c *Conn) {
	early := c.early
	c.early = nil
	for i := range early {
		e := &early[i]
		d.buffered -= len(e.data)
		if e.missing > 0 {
			d.lose(c, e.end, e.missing, e.frame, e.at)
		} else {
			d.read(c, e.end, e.data, e.frame, e.at)
		}
	}
}

// giveUpDeciding hands on what came as bytes that nobody knows.
func (d *Decoder) giveUpDeciding(c *Conn) {
	if c.decided || c.ID == 0 {
		return
	}
	c.decided = true
	if c.server == unknown {
		c.settle(d.likelyServer(c, nil))
	}
	d.stats.Unknown++
	d.replay(c)
}

// recognise decides on a protocol if the bytes that an end sent leave no doubt.
func (d *Decoder) recognise(c *Conn, end int, b []byte) bool {
	if len(b) == 0 {
		return false
	}
	if c.server == unknown && len(d.opts.Ports) > 0 {
		c.settle(d.likelyServer(c, nil))
	}
	if p := d.opts.Protocol; p != nil {
		if c.server == unknown {
			f, from, told := dialectOf(p).begins(c, b)
			if f == yes && told {
				c.settle(serverEnd(end, from))
			} else {
				c.settle(d.likelyServer(c, p))
			}
		}
		d.adopt(c, p)
		return true
	}
	if d.remembers(c) {
		return true
	}
	for i := range dialects {
		dl := &dialects[i]
		f, from, told := dl.begins(c, b)
		if f != yes {
			if f == no && c.Uncertain && dl.header != nil {
				f, from, told = dl.inside(c, b)
			}
			if f != yes {
				continue
			}
		}
		if c.server == unknown {
			if told {
				c.settle(serverEnd(end, from))
			} else {
				c.settle(d.likelyServer(c, dl.protocol))
			}
		}
		if told && c.side(end) != from && b[0] != 0 {
			continue // words of the other side
		}
		d.adopt(c, dl.protocol)
		d.remember(c, b)
		return true
	}
	return false
}

const maxKnown = 1 << 10 // servers

// remember notes what a server speaks, if a connection leaves no doubt: its beginning is
// there, or it is in no text.
func (d *Decoder) remember(c *Conn, b []byte) {
	if (!c.Uncertain || b[0] == 0) && len(d.known) < maxKnown {
		d.known[c.ends[c.server]] = c.Protocol
	}
}

// remembers adopts what a server speaks elsewhere for a connection of which the beginning
// is missing: lines of text from their middle may look like another protocol's.
func (d *Decoder) remembers(c *Conn) bool {
	if !c.Uncertain {
		return false
	}
	for end := range c.ends {
		if p := d.known[c.ends[end]]; p != nil && (c.server == unknown || c.server == int8(end)) {
			c.settle(int8(end))
			d.adopt(c, p)
			return true
		}
	}
	return false
}

// inside looks for a header in the middle of b.
func (dl *dialect) inside(c *Conn, b []byte) (f fit, from codec.Side, told bool) {
	for side := codec.Peer; side <= codec.Server; side++ {
		for k, n := 0, 1; n > 0 && len(b)-k > 1; k += n {
			if k > 0 {
				if f, from, told = dl.begins(c, b[k:]); f == yes && told && known(dl.protocol, from, b[k:], dl.header) {
					return f, from, told
				}
			}
			n = dl.next(c, side, b[k:])
		}
	}
	return no, from, false
}

func serverEnd(end int, from codec.Side) int8 {
	if from == codec.Server {
		return int8(end)
	}
	return int8(1 - end)
}

// likelyServer guesses which end is the server by its port.
func (d *Decoder) likelyServer(c *Conn, p *codec.Protocol) int8 {
	for _, port := range d.opts.Ports {
		for i := range c.ends {
			if c.ends[i].port == port {
				return int8(i)
			}
		}
	}
	for i := range c.ends {
		if p != nil && int(c.ends[i].port) == p.DefaultPort {
			return int8(i)
		}
	}
	return 0 // the lower port
}

func (d *Decoder) adopt(c *Conn, p *codec.Protocol) {
	c.decided, c.Protocol = true, p
	c.Role = codec.Role(1<<len(p.Roles) - 1)
	if p.NewSession == nil {
		return
	}
	o := codec.Options{MaxData: maxMessage}
	if c.Uncertain {
		o.Waive = unpaired[p]
	}
	c.session = p.NewSession(o)
}
