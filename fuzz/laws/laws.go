package laws

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"jobwire/codec"
)

// AppendDecode checks that decoding an encoded message yields the same message. If several of the expected replies have
// the same bytes, it also accepts the type that comes first in the protocol's list.
func AppendDecode(c *Case) error { return checkRoundTrip(c, false) }

// RefusedOrRead is AppendDecode for legal and illegal messages: the encoder may also reject a message, and must then
// leave the session and the buffer unchanged.
func RefusedOrRead(c *Case) error { return checkRoundTrip(c, true) }

// checkRoundTrip encodes and decodes the messages of a case one after the other, and checks that each decoded message
// is equal to the original. If refusable is set, the encoder may reject a message.
func checkRoundTrip(c *Case, refusable bool) error {
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
			return fmt.Errorf("cannot encode %s %.200q after %.200q: %w", want.Type.Name, want.Args, b, err)
		}
		buf = append(b, "after"...)
		raw := b[len("before"):]
		n, err := reader.Decode(st.From, buf[len("before"):], &f)
		if err != nil || n != len(raw) {
			return fmt.Errorf("decode %.200q, the encoding of %s: expected %d bytes consumed, got %d, error %v", raw,
				want.Type.Name, len(raw), n, err)
		}
		f.Message(&got)
		same := got.Type == want.Type && got.CRLF == want.CRLF && slices.EqualFunc(got.Args, want.Args, bytes.Equal)
		if !same && !earlier(waiting, got.Type, want.Type) {
			return fmt.Errorf("decode %.200q: expected %s %.200q, which was encoded to it, got %s %.200q, CRLF %v", raw,
				want.Type.Name, want.Args, got.Type.Name, got.Args, got.CRLF)
		}
		switch {
		case st.From == codec.Peer && want.Type.Ordered:
			waiting = append(waiting, want.Type)
		case st.From == codec.Server && len(waiting) > 0 && slices.Contains(waiting[0].Answers, got.Type):
			waiting = waiting[1:]
		}
	}
	return nil
}

// earlier reports whether decoders try type a before type b. waiting are the requests without a reply, oldest first.
func earlier(waiting []*codec.Type, a, b *codec.Type) bool {
	if len(waiting) > 0 && slices.Contains(waiting[0].Answers, b) {
		i := slices.Index(waiting[0].Answers, a)
		return i >= 0 && i < slices.Index(waiting[0].Answers, b)
	}
	return a.Code == 0 && a.Index < b.Index && !b.Ordered
}

// Prefixes checks that the decoder treats each proper prefix of a message as incomplete, that the number of bytes it
// asks for is not greater than the length of the message, and that decoding a prefix does not change the session.
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
		// Try all prefixes of a short message. For a long message, try those near both ends and 32 others.
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
			return fmt.Errorf("decode %.200q after each of its prefixes: expected %d bytes consumed, got %d, error %v", raw,
				len(raw), n, err)
		}
	}
	return nil
}

// short checks that the first k bytes of a message are incomplete, and that the decoder asks for more than k bytes and
// at most all of the message.
func short(s codec.Session, from codec.Side, raw []byte, k int, f *codec.Frame) error {
	part := codec.Stream{Session: s, From: from}
	if n, found, err := part.Read(raw[:k:k], f); found != codec.Nothing || part.Need() <= k || part.Need() > len(raw) {
		return fmt.Errorf("decode the first %d of the %d bytes %.200q: expected an incomplete message, got length %d, error %v, %d bytes needed", k, len(raw), raw, n, err, part.Need())
	}
	return nil
}

// Chunks checks that the decoded messages do not depend on how the bytes are divided. It decodes the bytes of each step
// as one chunk, and again in several chunks.
func Chunks(c *Case) error {
	r := c.random()
	small := 1
	if r.IntN(2) == 0 {
		small = 1 << r.IntN(8)
	}
	return checkChunks(c, func(n int) int { return r.IntN(min(n, small)) })
}

// Bytewise is Chunks with chunks of one byte.
func Bytewise(c *Case) error { return checkChunks(c, func(int) int { return 0 }) }

// reading is the result of decoding one message from a stream.
type reading struct {
	n       int // length of the message in bytes; 0: unknown
	err     string
	msgType *codec.Type
	spans   []codec.Span
}

// readings decodes b and calls do for each message until do returns an error, which it returns.
func readings(s *codec.Stream, b []byte, f *codec.Frame, do func(reading) error) error {
	for p := range s.Feed(b, f) {
		got := reading{n: len(p.Raw) + s.Skip(), msgType: f.Type, spans: f.Spans}
		switch {
		case p.Found == codec.Skipped:
			continue
		case p.Err != nil:
			if got.err = p.Err.Error(); p.Err.Fatal {
				got.n = 0
			}
		}
		if err := do(got); err != nil {
			return err
		}
	}
	return nil
}

// checkChunks checks that a stream that receives the bytes in chunks finds the same messages and errors as one that
// receives them at once. For next, see cut.
func checkChunks(c *Case, next func(n int) int) error {
	writer := c.Protocol.NewSession(c.Options)
	whole, pieces := codec.Streams(c.Protocol.NewSession(c.Options)), codec.Streams(c.Protocol.NewSession(c.Options))
	var first []reading
	var raw []byte
	var f codec.Frame
	for i := range c.Steps {
		from := c.Steps[i].From
		var err error
		if raw, err = c.append(writer, raw[:0], i); err != nil {
			return err
		}
		first = first[:0]
		readings(&whole[from], raw, &f, func(got reading) error {
			got.spans = slices.Clone(got.spans)
			first = append(first, got)
			return nil
		})
		k := 0
		for _, piece := range cut(raw, next) {
			err := readings(&pieces[from], piece, &f, func(got reading) error {
				if k == len(first) {
					return fmt.Errorf("decode %.200q in chunks: expected an incomplete message, as for one chunk, got message %d of %d bytes, error %q", raw, k, got.n, got.err)
				}
				want := &first[k]
				k++
				if got.n != want.n || got.err != want.err || got.msgType != want.msgType || !slices.Equal(got.spans, want.spans) {
					return fmt.Errorf("decode %.200q in chunks, message %d: expected %d bytes, %q, spans %v, as for one chunk; got %d bytes, %q, spans %v",
						raw, k-1, want.n, want.err, want.spans, got.n, got.err, got.spans)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		if k < len(first) {
			return fmt.Errorf("decode %.200q in chunks: expected %d messages, as for one chunk, got %d", raw, len(first), k)
		}
	}
	return nil
}

// Reencode checks that encoding a decoded message yields the same bytes, and that the spans of the message contain
// every byte exactly once.
func Reencode(c *Case) error {
	sc := scratches.Get().(*scratch)
	defer scratches.Put(sc)
	sc.mirror = c.Protocol.NewSession(c.Options)
	reader := codec.Streams(c.Protocol.NewSession(c.Options))
	var writer codec.Session
	for i := range c.Steps {
		if writer == nil && c.Steps[i].Message.Type != nil {
			writer = c.Protocol.NewSession(c.Options)
		}
		var err error
		if sc.raw, err = c.append(writer, sc.raw[:0], i); err != nil {
			return err
		}
		from := c.Steps[i].From
		for p := range reader[from].Feed(sc.raw, &sc.frame) {
			if p.Found == codec.Skipped {
				continue
			}
			if err := sc.again(from, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// scratch is memory that Reencode reuses, because fuzzers call Reencode very often.
type scratch struct {
	mirror         codec.Session
	message        codec.Message
	frame, skip    codec.Frame
	raw, out, want []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// again encodes a decoded message and compares the result with the original bytes.
func (sc *scratch) again(from codec.Side, p codec.Piece) (err error) {
	b, f := p.Raw, &sc.frame
	if p.Err != nil {
		sc.mirror.Decode(from, b, &sc.skip) // keep the state of both sessions equal
		return nil
	}
	if !bytes.Equal(f.Raw, b) {
		return fmt.Errorf("decode %.200q: expected a frame of these bytes, got %.200q", b, f.Raw)
	}
	m := &sc.message
	f.Message(m)
	sc.out, err = sc.mirror.Append(sc.out[:0], from, m)
	if err != nil {
		return fmt.Errorf("decode %.200q: got %s %.200q, which cannot be encoded: %w", b, m.Type.Name, m.Args, err)
	}
	var tiled bool
	if sc.want, tiled = canonical(sc.want[:0], f, sc.out); !tiled {
		return fmt.Errorf("decode %.200q: expected spans that cover each byte once, got %v", b, f.Spans)
	}
	if !bytes.Equal(sc.out, sc.want) {
		return fmt.Errorf("decode %.200q: got %s %.200q, which is encoded as %.200q", b, m.Type.Name, m.Args, sc.out)
	}
	return nil
}

// Session checks two laws with arbitrary bytes in both directions: a decoded message is encoded as the same bytes
// (Reencode), and decoding byte by byte finds the same messages (Bytewise). The limits of the sessions are low, so that
// short inputs reach them.
func Session(p *codec.Protocol, up, down []byte) error {
	c := Case{Protocol: p, Options: codec.Options{MaxData: 1 << 10, MaxLine: 128, MaxPending: 16},
		Steps: []Step{{From: codec.Peer, Raw: up}, {From: codec.Server, Raw: down}}}
	if err := Reencode(&c); err != nil {
		return err
	}
	return Bytewise(&c)
}
