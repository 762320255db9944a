package mutants

import (
	"strings"
	"time"

	"jobwire/codec"
)

// connections are faults of what one connection means to itself and to others.
var connections = []Mutant{
	{Name: "hang-up-unnoticed", About: "Where a client hung up without quit, the next is not served.",
		Kills: cases("connection.close"),
		Hook: func(b *bench) {
			hung := false
			b.leaving = func(c *conn) {
				if p := b.peers[c]; p.heard == 1 && p.request.Type != nil && p.request.Type.Name == "use" {
					hung = true
				}
			}
			b.on("list-tube-used", func(c *conn, f *frame) {
				if b.peers[c].heard > 1 || c.ID() == 1 {
					b.pass(c, f)
					return
				}
				// The end of the other connection may be noticed only now.
				b.after(40*time.Millisecond, func() {
					if b.peers[c] != nil && !hung {
						b.pass(c, compose("list-tube-used"))
					}
				})
			})
		}},
	{Name: "idle-client-greeted", About: "A client that is slow to ask gets a greeting.",
		Kills: cases("connection.nothing-unasked"),
		Hook: func(b *bench) {
			begun := false
			b.decode = func(s codec.Session, p []byte, f *frame) (int, error) {
				begun = true
				return s.Decode(codec.Peer, p, f)
			}
			b.opened = func(c *conn) {
				b.after(30*time.Millisecond, func() {
					if b.peers[c] != nil && !begun {
						b.blurt(c, "OK 0\r\n\r\n")
					}
				})
			}
		}},
	{Name: "wait-blocks-others", About: "While a worker waits, nobody else is told what tube he uses.",
		Kills: cases("connection.independent stats.connections"),
		Hook: silent("list-tube-used", func(b *bench, c *conn, _ []string) bool {
			for _, p := range b.peers {
				if p.conn != c && p.waits && p.request.Type.Name == "reserve" {
					return true
				}
			}
			return false
		})},
	{Name: "body-blocks-others", About: "While a body is on its way, nobody else is served.",
		Kills: cases("connection.independent-body"),
		Hook: func(b *bench) {
			var in codec.Session // the one in the middle of a body
			b.decode = func(s codec.Session, p []byte, f *frame) (int, error) {
				n, err := s.Decode(codec.Peer, p, f)
				if err == codec.ErrShort && inBody(p) {
					in = s
				} else if in == s {
					in = nil
				}
				return n, err
			}
			b.on("list-tube-used", func(c *conn, f *frame) {
				if in == nil {
					b.pass(c, f)
				}
			})
		}},
	{Name: "reserve-does-not-hold", About: "What comes behind a reserve that waits is carried out at once.",
		Kills: cases("connection.behind-reserve connection.put-behind-reserve"), Hook: notHeld("reserve")},
}

// notHeld lets the machine have what comes behind a command that it cannot answer yet.
func notHeld(command string) Hook {
	return func(b *bench) {
		b.on(command, func(c *conn, f *frame) {
			b.pass(c, f)
			c.Resume()
		})
	}
}

// bodies are faults of what becomes of a job's body.
var bodies = []Mutant{
	{Name: "body-ends-at-nul", About: "A body ends at its first NUL.",
		Kills: cases("body.all-kinds-of-bytes"), Hook: kept(func(body string) string {
			body, _, _ = strings.Cut(body, "\x00")
			return body
		})},
	{Name: "empty-body-refused", About: "A body has at least one byte.",
		Kills: cases("body.empty"), Hook: refuses("put", "BAD_FORMAT", func(a []string) bool { return a[3] == "" })},
	{Name: "quit-in-a-body", About: "A body that begins with quit ends the connection.",
		Kills: cases("body.like-commands"),
		Hook: func(b *bench) {
			b.on("put", func(c *conn, f *frame) {
				if strings.HasPrefix(arg(f, 3), "quit\r\n") {
					c.Close()
					return
				}
				b.pass(c, f)
			})
		}},
	{Name: "body-of-line-ends-trimmed", About: "Of a body that consists of line ends nothing is kept.",
		Kills: cases("body.line-ends-only"), Hook: kept(func(body string) string {
			if strings.Trim(body, "\r\n") == "" {
				return ""
			}
			return body
		})},
	{Name: "large-body-cut-off", About: "A body is cut off behind 65000 bytes.",
		Kills: cases("body.large"), Hook: kept(func(body string) string { return body[:min(len(body), 65000)] })},
}

// kept is what is kept of bodies.
func kept(change func(body string) string) Hook {
	return takenFor("put", func(a []string) []string { return append(a[:3:3], change(a[3])) })
}
