package audit_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/audit"
	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/fuzz/gen"
	"jobwire/internal/target"
	"jobwire/refserver"
)

// TestSharedConnection: threads of a client that share a connection, and do not wait for replies, violate rules, but
// the server does not, whatever it replies. The threads have different roles, and one may write into a message of the
// other.
func TestSharedConnection(t *testing.T) {
	for _, e := range catalog.All() {
		t.Run(e.Protocol.Name, func(t *testing.T) {
			t.Parallel()
			n, violations := 2500, 0
			if testing.Short() {
				n = 60
			}
			for seed := range n {
				synctest.Test(t, func(t *testing.T) {
					sleep := func(d time.Duration) { time.Sleep(d) }
					s := shared{e: e, r: gen.New(uint64(seed)), sleep: sleep}
					for _, b := range s.run(t).BrokenRules {
						if b.By == codec.Peer {
							violations++
							continue
						}
						t.Errorf("seed %d: %s: %v\n%s", seed, b.Rule.ID, b.First[0].Err, strings.Join(s.log, "\n"))
					}
				})
				if t.Failed() {
					return
				}
			}
			if violations == 0 {
				t.Error("no client violated a rule")
			}
		})
	}
}

// shared performs a random conversation on three connections, of which threads share the first.
type shared struct {
	e     *catalog.Entry
	r     *rand.Rand
	sleep func(time.Duration)

	mu  sync.Mutex
	ids [][]byte // of jobs, from the messages of the server
	log []string
}

func (s *shared) run(t *testing.T) *audit.Report {
	p := s.e.Protocol
	upstream, err := target.InMemory(t.Context(), p.Name, func(ctx context.Context, ln net.Listener) error {
		return refserver.New(s.e.New(), refserver.Options{Protocol: p}).Serve(ctx, ln)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Stop()
	dial := func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, upstream) }
	a := audit.New(audit.Options{Protocol: p, Server: true, Message: s.note})
	proxy := &audit.Proxy{Auditor: a, Dial: dial}
	front, err := target.InMemory(t.Context(), "proxy", proxy.Serve)
	if err != nil {
		t.Fatal(err)
	}
	defer front.Stop()
	var conns [3]net.Conn
	for i := range conns {
		if conns[i], err = target.Dial(t.Context(), front); err != nil {
			t.Fatal(err)
		}
		go io.Copy(io.Discard, conns[i])
	}
	for range 10 + s.r.IntN(40) {
		i := max(0, s.r.IntN(6)-3)
		role := codec.Role(1) << (i % len(p.Roles))
		if i == 0 {
			role = codec.Role(1) << s.r.IntN(len(p.Roles))
		}
		b := s.message(role)
		if other := s.message(codec.Role(1) << s.r.IntN(len(p.Roles))); i == 0 && s.r.IntN(12) == 0 {
			b = interleave(s.r, b, other)
		}
		conns[i].Write(b)
		if s.r.IntN(2) == 0 {
			s.sleep(time.Millisecond << s.r.IntN(12))
		}
	}
	s.sleep(6 * time.Second) // after 5 s, a request counts as unanswered
	for _, c := range conns {
		c.Close()
	}
	synctest.Wait()
	return a.Report()
}

// note records a message that the auditor has decoded.
func (s *shared) note(actor string, f *codec.Frame, bad *codec.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%s, %v: %.200q %v", actor, f.From, f.Raw, bad))
	if bad != nil || f.From == codec.Peer || f.Type == nil {
		return
	}
	if id := f.Get(codec.JobID); id != nil {
		s.ids = append(s.ids, append([]byte{}, id...))
	}
}

// message returns a random message of a role, usually about a job that the server has named.
func (s *shared) message(role codec.Role) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		m := gen.Message(s.r, s.e.Protocol, codec.Peer, role, gen.Options{Safe: true})
		if m.Type == nil || m.Type.Does == codec.Shutdown {
			continue
		}
		if i := m.Type.At(codec.JobID); i >= 0 && i < len(m.Args) && len(s.ids) > 0 && s.r.IntN(8) > 0 {
			m.Args[i] = s.ids[len(s.ids)-1-s.r.IntN(min(4, len(s.ids)))]
		}
		if b, err := s.e.Protocol.NewSession(codec.Options{}).Append(nil, codec.Peer, &m); err == nil {
			return b
		}
	}
}

// interleave mixes the bytes of two messages.
func interleave(r *rand.Rand, a, b []byte) (all []byte) {
	for len(a)+len(b) > 0 {
		n := r.IntN(len(a) + 1)
		all, a = append(all, a[:n]...), a[n:]
		a, b = b, a
	}
	return all
}
