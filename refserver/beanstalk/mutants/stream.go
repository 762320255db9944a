package mutants

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/refserver/inject"
)

// stream are faults of how the bytes of a connection are divided into messages.
var stream = []mutantSpec{
	{Name: "lf-ends-a-line", About: "The server accepts LF alone as the end of a line.",
		KilledBy: "line.lf-alone line.lf-inside line.lf-ends", Codec: codec.Options{Waive: []codec.RuleID{protocol.RuleLineCRLF}}},
	{Name: "line-of-221", About: "The server rejects lines of more than 221 bytes instead of more than 224 bytes.",
		KilledBy: "line.of-a-command", Codec: codec.Options{MaxLine: 221}},
	{Name: "line-of-222", About: "The server rejects lines of more than 222 bytes instead of more than 224 bytes.",
		KilledBy: "line.of-a-command", Codec: codec.Options{MaxLine: 222}},
	{Name: "line-of-223", About: "The server rejects lines of more than 223 bytes instead of more than 224 bytes.",
		KilledBy: "line.of-a-command[delay=1000000000] line.of-a-command[delay=4294967295]", Codec: codec.Options{MaxLine: 223}},
	{Name: "body-of-65534", About: "The server rejects bodies of more than 65534 bytes.",
		KilledBy: "size.default body.cut[n=65527] body.length[n=65535]", Codec: codec.Options{MaxData: 65534}},
	{Name: "cr-at-the-limit-ends-a-line", About: "The server accepts CR alone as the end of a line if the CR is at the maximum length.",
		KilledBy: "line.cut-at-the-limit", Edit: inject.Wrap(func(c net.Conn) net.Conn {
			return inject.Reading(c, func(p []byte) (int, error) {
				n, err := c.Read(p)
				if n == 224 && n < len(p) && p[n-1] == '\r' {
					p[n] = '\n'
					n++
				}
				return n, err
			})
		})},
	{Name: "piece-without-end-lost", About: "The server discards a segment that contains no line end.",
		KilledBy: "peek.unfinished-put line.in-pieces body.in-pieces body.cut line.cut-at-the-limit", Edit: inject.Filter(func(p []byte) []byte {
			if bytes.IndexByte(p, '\n') < 0 && len(p) < 512 {
				return nil
			}
			return p
		})},
	{Name: "last-lf-not-awaited", About: "The server executes a put before the LF after its body has arrived.",
		KilledBy: "put.body-without-its-end put.half-sent", Edit: inject.Incomplete(func(_ codec.Session, p []byte) []byte {
			if inBody(p) && p[len(p)-1] == '\r' {
				return append(bytes.Clone(p), '\n')
			}
			return nil
		})},
	{Name: "body-before-a-pipeline-cut-off", About: "The server truncates a body after its first line if more commands have arrived.",
		KilledBy: "pipeline.cut-in-a-body", Edit: inject.Decode(func(s codec.Session, p []byte, f *codec.Frame) (int, error) {
			n, err := s.Decode(codec.Peer, p, f)
			if err == nil && inBody(p) && n < len(p) {
				_, body, _ := bytes.Cut(p[:n-2], []byte("\r\n"))
				if k := bytes.Index(body, []byte("\r\n")); k >= 0 {
					stop := n - len(body) + k
					return stop, &codec.Error{Rule: protocol.RulePutCRLF, Offset: stop - 2, Field: "Body", Detail: "the line ends"}
				}
			}
			return n, err
		})},
	{Name: "big-body-run", About: "The server executes a body that is too large as commands.",
		KilledBy: "size.too-big-skipped size.too-big-twice", Edit: inject.Decode(func(s codec.Session, p []byte, f *codec.Frame) (int, error) {
			n, err := s.Decode(codec.Peer, p, f)
			if e, ok := err.(*codec.Error); ok && e.Rule == protocol.RulePutSize {
				if k := bytes.IndexByte(p, '\n') + 1; bytes.Contains(p[:k], []byte(" 69000")) || bytes.Contains(p[:k], []byte(" 70000")) {
					n = k
				}
			}
			return n, err
		})},
	{Name: "half-a-body-put", About: "The server creates a job from an incomplete body when the client disconnects.",
		KilledBy: "put.half-sent", Edit: func(s *inject.Server) {
			var partial string
			inject.Incomplete(func(_ codec.Session, p []byte) []byte {
				partial = ""
				if inBody(p) {
					partial = string(p)
				}
				return nil
			})(s)
			s.On(inject.Closed, func(m *message) {
				if strings.HasPrefix(partial, "put 0 0 60 10\r\n") {
					m.Peer.Ask("put", "0", "0", "60", "hello")
					partial = ""
				}
			})
		}},
	{Name: "unfinished-put-shown", About: "The server shows a job with peek before the body of the job has arrived.",
		KilledBy: "peek.unfinished-put", Edit: func(s *inject.Server) {
			unfinished := false
			inject.Incomplete(func(_ codec.Session, p []byte) []byte {
				unfinished = unfinished || inBody(p)
				return nil
			})(s)
			s.On("put", func(m *message) { unfinished = false })
			inject.Out("NOT_FOUND", func(m *message) bool { return unfinished && m.Request.Name == "peek" && m.Request.Args[0] == "1" },
				func(m *message) { m.Raw = []byte("FOUND 1 500\r\n" + strings.Repeat("x", 500) + "\r\n") })(s)
		}},
	{Name: "half-closed-body-put", About: "The server creates a job from a body without its line end when the client half-closes the connection.",
		KilledBy: "put.half-sent", Edit: func(s *inject.Server) {
			all := ""
			inject.Incomplete(func(_ codec.Session, p []byte) []byte {
				if p != nil {
					all = string(p)
				}
				return nil
			})(s)
			s.On(inject.HalfClosed, func(m *message) {
				if strings.HasSuffix(all, "hello12345") {
					m.Peer.Ask("put", "0", "0", "60", "hello12345")
				}
			})
		}},
	{Name: "last-words-lost", About: "The server discards commands that arrive immediately before a client half-closes the connection.",
		KilledBy: "half-closed.replies", Edit: inject.Wrap(losesLastData)},
}

// inBody reports whether b is a put with an incomplete body.
func inBody(b []byte) bool {
	return bytes.HasPrefix(b, []byte("put ")) && bytes.Contains(b, []byte("\r\n"))
}

// losesLastData discards data that the peer sends immediately before it closes its direction.
func losesLastData(c net.Conn) net.Conn {
	return inject.Reading(c, func(p []byte) (int, error) {
		n, err := c.Read(p)
		if err != nil || n == len(p) {
			return n, err
		}
		c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		more, err := c.Read(p[n:])
		c.SetReadDeadline(time.Time{})
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return n + more, nil
		}
		return 0, err
	})
}
