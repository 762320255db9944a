package jobtest

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/refserver"
)

// Options are the settings of a [Server]. All are optional.
type Options struct {
	Faults []string       // faults of the server, in the notation of the flag --fault of 'jobwire serve'
	Waive  []codec.RuleID // rules that clients and workers may violate, and that the server does not enforce
	Levels []codec.Level  // levels of the rules whose violations are errors of the test; nil: only codec.Must

	// Unchecked is set if no violation is an error of the test. Report returns the violations.
	Unchecked bool
}

// Server is a reference server for one test. Its methods may be called from any goroutine.
type Server struct {
	t        testing.TB
	protocol *codec.Protocol
	opts     Options
	auditor  *audit.Auditor
	proxy    *audit.Proxy
	back     target.Target // the reference server
	front    target.Target // the proxy, to which clients and workers connect, in memory

	mu       sync.Mutex    // guards the fields below
	tcp      target.Target // the proxy on the loopback interface; nil until Addr is called
	closed   bool
	printer  transcript.Printer
	text     []byte
	received []codec.Frame
}

// drainTime is how long Close waits for clients and workers to close their connections.
const drainTime = time.Second

// NewServer starts a reference server of the protocol, and closes it at the end of the test. It listens in memory and,
// after the first call of Addr, on the loopback interface. In a bubble of package testing/synctest, the server uses
// only the time of the bubble. NewServer ends the test with Fatalf if the protocol or an option is invalid.
func NewServer(t testing.TB, protocol string, o Options) *Server {
	t.Helper()
	e := entry(t, protocol, o.Waive, o.Levels)
	if o.Levels == nil {
		o.Levels = []codec.Level{codec.Must}
	}
	s := &Server{t: t, protocol: e.Protocol, opts: o, printer: transcript.Printer{Protocol: e.Protocol}}
	limits := codec.Options{Waive: o.Waive}
	s.auditor = audit.New(audit.Options{Protocol: e.Protocol, Codec: limits, Message: s.record})
	machine, settings := e.New(), refserver.Options{Protocol: e.Protocol, Codec: limits}
	if len(o.Faults) > 0 {
		faulty, err := e.Injector().Wrap(machine, &settings, strings.Join(o.Faults, "\n"))
		if err != nil {
			t.Fatalf("jobtest: Faults: %v", err)
		}
		faulty.Errors = func(err error) { t.Errorf("jobtest: Faults: %v", err) }
		machine = faulty
	}
	// The servers get no context of the test, because that ends before Close is called.
	var err error
	if s.back, err = target.InMemory(context.Background(), "the "+protocol+" server of the test",
		refserver.New(machine, settings).Serve); err != nil {
		t.Fatalf("jobtest: %v", err)
	}
	s.proxy = &audit.Proxy{Auditor: s.auditor, Dial: func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, s.back) }}
	if s.front, err = target.InMemory(context.Background(), proxyName, s.proxy.Serve); err != nil {
		s.back.Stop()
		t.Fatalf("jobtest: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

const proxyName = "the proxy of the test"

// Dial connects to the server in memory. After Close, the error matches syscall.ECONNREFUSED. [Listener] describes the
// connection.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	return new(transport.Dialer).Dial(ctx, s.front.Addr())
}

// Addr returns the address of the server on the loopback interface, as HOST:PORT. The first call makes the server
// listen there. Addr panics in a bubble of package testing/synctest, in which time would not pass while the server
// waits for connections: use Dial there.
func (s *Server) Addr() string {
	if name := bubbleName(); name != "" {
		panic("jobtest: Addr was called in a bubble of package testing/synctest: use Dial")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tcp == nil {
		var err error
		if s.tcp, err = target.Func(context.Background(), proxyName, s.proxy.Serve); err != nil {
			panic(fmt.Sprintf("jobtest: %v", err)) // as in net/http/httptest
		}
		if s.closed {
			s.tcp.Stop()
		}
	}
	return s.tcp.Addr()
}

// record records a message of either side.
func (s *Server) record(actor string, f *codec.Frame, bad *codec.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := f.Clone()
	if bad != nil {
		seen.Type = nil
	}
	s.text = s.printer.AppendLine(s.text, actor, &seen)
	if f.From == codec.Peer {
		s.received = append(s.received, seen)
	}
}

// Transcript returns the messages of all connections so far, one message per line, in the notation of transcripts. Each
// client or worker has its role and the number of its connection, such as "Worker 2". Illegal messages are raw bytes.
// The transcript of a connection ends at an illegal message after which the beginning of the next message is unknown.
//
// A request is in the transcript when the client has received the reply. All messages are in the transcript after
// Close.
func (s *Server) Transcript() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// Received returns the messages of clients and workers so far, in the order in which they arrived. The Type of an
// illegal message is nil. The messages are those of Transcript.
func (s *Server) Received() []codec.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// Report returns the rules that clients and workers have violated so far, whatever their level, and the rules that
// their messages have exercised.
func (s *Server) Report() *audit.Report { return s.auditor.Report() }

// Close waits up to one second until clients and workers have closed their connections, stops the server, and reports
// violations as errors of the test. Further calls do nothing. The end of the test calls Close.
func (s *Server) Close() {
	s.t.Helper()
	s.mu.Lock()
	again, tcp := s.closed, s.tcp
	s.closed = true
	s.mu.Unlock()
	if again {
		return
	}
	s.proxy.Drain(drainTime)
	s.front.Stop()
	if tcp != nil {
		tcp.Stop()
	}
	s.back.Stop()
	if s.opts.Unchecked {
		return
	}
	r := s.Report()
	for i := range r.BrokenRules {
		if b := &r.BrokenRules[i]; slices.Contains(s.opts.Levels, b.Rule.Level) {
			s.t.Errorf("%s", b.AppendText(nil, s.protocol, audit.TextOptions{}))
		}
	}
}
