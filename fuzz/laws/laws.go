package laws

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"jobwire/codec"
)

// AppendDecode: what is written is read as what it was. Where replies are told
// apart by their form alone, an earlier row among those that are due may say the
// same bytes, and is then what is read.
func AppendDecode(c *Case) error { return written(c, false) }

// RefusedOrRead: so it is with every message, legal or not, unless writing it is
// refused. Then nothing has changed.
func RefusedOrRead(c *Case) error { return written(c, true) }

func written(c *Case, refusable bool) error {
	writer, reader := c.Protocol.NewSession(c.Options), c.Protocol.NewSession(c.Options)
	var waiting []*codec.Type
	var f codec.Frame
	var got codec.Message
	var buf []byte
	for i := range c.Steps {
		st := &c.Steps[i]
		want := &st.Message
		b, err := writer.Append(append(buf[:0], "before"...), st.From, want)
		if err != nil {
			if refusable && string(b) == "before" {
				continue
			}
			return fmt.Errorf("%s %.200q cannot be written: %.200q, %w", want.Type.Name, want.Args, b, err)
		}
		buf = append(b, "behind"...)
		raw := b[len("before"):]
		n, err := reader.Decode(st.From, buf[len("before"):], &f)
		if err != nil || n != len(raw) {
			return fmt.Errorf("%s is written as %.200q, and read as %d bytes of %d: %v", want.Type.Name, raw, n, len(raw), err)
		}
		f.Message(&got)
		same := got.Type == want.Type && got.CRLF == want.CRLF && slices.EqualFunc(got.Args, want.Args, bytes.Equal)
		if !same && !earlier(c.Protocol, waiting, got.Type, want.Type) {
			return fmt.Errorf("%s %.200q is written as %.200q, and read as %s %.200q, CRLF %v", want.Type.Name, want.Args, raw, got.Type.Name, got.Args, got.CRLF)
		}
		switch {
		case st.From == codec.Peer && len(want.Type.Replies) > 0:
			waiting = append(waiting, want.Type)
		case st.From == codec.Server && len(waiting) > 0 && slices.Contains(waiting[0].Replies, got.Type.Name):
			waiting = waiting[1:]
		}
	}
	return nil
}

// earlier reports whether readers take row a before b: where both may answer the
// oldest request, or the second answers none.
func earlier(p *codec.Protocol, waiting []*codec.Type, a, b *codec.Type) bool {
	if len(waiting) > 0 && slices.Contains(waiting[0].Replies, b.Name) {
		names := waiting[0].Replies
		i := slices.Index(names, a.Name)
		return i >= 0 && i < slices.Index(names, b.Name)
	}
	return a.Code == 0 && a.Index < b.Index && unasked(p, b)
}

// Prefixes: a message is short until its last byte is there, it is told so with a
// length that is still to come, and nothing has changed then.
func Prefixes(c *Case) error {
	writer, reader := c.Protocol.NewSession(c.Options), c.Protocol.NewSession(c.Options)
	r := c.random()
	var f codec.Frame
	var raw []byte
	for i := range c.Steps {
		st := &c.Steps[i]
		var err error
		if raw, err = c.append(writer, raw[:0], i); err != nil {
			return err
		}
		// All of a short one, else those at its ends and some between.
		for k := 0; k < len(raw); k++ {
			if k == 48 && len(raw) > 128 {
				for range 32 {
					if err := short(reader, st.From, raw, 48+r.IntN(len(raw)-48), &f); err != nil {
						return err
					}
				}
				k = len(raw) - 16
			}
			if err := short(reader, st.From, raw, k, &f); err != nil {
				return err
			}
		}
		if n, err := reader.Decode(st.From, raw, &f); err != nil || n != len(raw) {
			return fmt.Errorf("%.200q, after its prefixes: %d bytes of %d, %v", raw, n, len(raw), err)
		}
	}
	return nil
}

func short(s codec.Session, from codec.Side, raw []byte, k int, f *codec.Frame) error {
	if n, err := s.Decode(from, raw[:k:k], f); err != codec.ErrShort || n <= k || n > len(raw) {
		return fmt.Errorf("%d bytes of %.200q, which are %d: %d, %v; want short", k, raw, len(raw), n, err)
	}
	return nil
}

// Chunks: it is all the same how bytes arrive. Those of every step are read as they
// are, and again in pieces.
func Chunks(c *Case) error {
	r := c.random()
	small := 1
	if r.IntN(2) == 0 {
		small = 1 << r.IntN(8)
	}
	return chunks(c, func(n int) int { return r.IntN(min(n, small)) })
}

// Bytewise is Chunks, one byte at a time.
func Bytewise(c *Case) error { return chunks(c, func(int) int { return 0 }) }

// reading is what became of one message.
type reading struct {
	from  codec.Side
	n     int
	err   string
	row   *codec.Type
	spans []codec.Span
}

func chunks(c *Case, next func(n int) int) error {
	writer := c.Protocol.NewSession(c.Options)
	whole, pieces := &stream{session: c.Protocol.NewSession(c.Options)}, &stream{session: c.Protocol.NewSession(c.Options)}
	var first []reading
	var raw []byte
	for i := range c.Steps {
		from := c.Steps[i].From
		var err error
		if raw, err = c.append(writer, raw[:0], i); err != nil {
			return err
		}
		first = first[:0]
		whole.feed(from, raw, func(_ []byte, n int, f *codec.Frame, err error) error {
			got := reading{from: from, n: n, row: f.Type, spans: slices.Clone(f.Spans)}
			if err != nil {
				got.err = err.Error()
			}
			first = append(first, got)
			return nil
		})
		k := 0
		for _, piece := range cut(raw, next) {
			err := pieces.feed(from, piece, func(b []byte, n int, f *codec.Frame, err error) error {
				if k == len(first) {
					return fmt.Errorf("%.200q: in one piece it is short; in pieces there is a message %d of %d bytes, %v", raw, k, n, err)
				}
				want := &first[k]
				k++
				var text string
				if err != nil {
					text = err.Error()
				}
				if n != want.n || text != want.err || f.Type != want.row || !slices.Equal(f.Spans, want.spans) {
					return fmt.Errorf("%.200q, message %d: in one piece %d bytes, %q, spans %v; in pieces %d bytes, %q, spans %v",
						raw, k-1, want.n, want.err, want.spans, n, text, f.Spans)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if k < len(first) {
			return fmt.Errorf("%.200q: in one piece %d messages; in pieces %d", raw, len(first), k)
		}
	}
	return nil
}

// Reencode: whatever is accepted is written again as the same bytes, and its rows
// hold every byte once.
func Reencode(c *Case) error {
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	sc.mirror = c.Protocol.NewSession(c.Options)
	sc.reader.reset(c.Protocol.NewSession(c.Options))
	var writer codec.Session
	for i := range c.Steps {
		if writer == nil && c.Steps[i].Message.Type != nil {
			writer = c.Protocol.NewSession(c.Options)
		}
		var err error
		if sc.raw, err = c.append(writer, sc.raw[:0], i); err != nil {
			return err
		}
		sc.from = c.Steps[i].From
		if err = sc.reader.feed(sc.from, sc.raw, sc.again); err != nil {
			return err
		}
	}
	return nil
}

// scratch is the memory of Reencode, which fuzzers call very often.
type scratch struct {
	reader         stream
	mirror         codec.Session
	from           codec.Side
	message        codec.Message
	skip           codec.Frame
	raw, out, want []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// again writes what was read.
func (sc *scratch) again(b []byte, _ int, f *codec.Frame, err error) error {
	if err != nil {
		sc.mirror.Decode(sc.from, b, &sc.skip) // so that both have seen it
		return nil
	}
	if !bytes.Equal(f.Raw, b) {
		return fmt.Errorf("%.200q is read as if it were %.200q", b, f.Raw)
	}
	m := &sc.message
	f.Message(m)
	sc.out, err = sc.mirror.Append(sc.out[:0], sc.from, m)
	if err != nil {
		return fmt.Errorf("%.200q is read as %s %.200q, which cannot be written: %w", b, m.Type.Name, m.Args, err)
	}
	var tiled bool
	if sc.want, tiled = canonical(sc.want[:0], f, sc.out); !tiled {
		return fmt.Errorf("%.200q is read with spans that do not hold each byte once: %v", b, f.Spans)
	}
	if !bytes.Equal(sc.out, sc.want) {
		return fmt.Errorf("%.200q is read as %s %.200q, which is written as %.200q", b, m.Type.Name, m.Args, sc.out)
	}
	return nil
}

// Session holds any bytes of both sides to Reencode and to Bytewise. Options are small
// enough for their limits to be met.
func Session(p *codec.Protocol, up, down []byte) error {
	c := Case{Protocol: p, Options: codec.Options{MaxData: 1 << 10, MaxLine: 128, MaxPending: 16},
		Steps: []Step{{From: codec.Peer, Raw: up}, {From: codec.Server, Raw: down}}}
	if err := Reencode(&c); err != nil {
		return err
	}
	return Bytewise(&c)
}
