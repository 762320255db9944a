package judge

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"jobwire/codec"
)

// TestBudget sends random messages with long names on many connections. The stored entries must not exceed the budget,
// and nothing may be stored about connections that have ended.
func TestBudget(t *testing.T) {
	const limit, conns, messages = 1 << 13, 400, 40_000
	for p := range checkers {
		t.Run(p.Name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			j := New(p)
			j.Budget.Max = limit
			j.Snapshot = func() any { return make([]byte, 1<<10) }
			types := [2][]*codec.Type{p.Sent(codec.Peer, 0xff), p.Sent(codec.Server, 0xff)}
			sessions := map[int]codec.Session{}
			reached := 0
			for i := range messages {
				id := r.IntN(conns)
				if sessions[id] == nil {
					sessions[id] = p.NewSession(codec.Options{WaiveAll: true})
					j.Open(id)
				}
				from := codec.Side(r.IntN(8) / 7)
				m := codec.Message{Type: types[from][r.IntN(len(types[from]))]}
				for k := 0; k < 6 && m.Type.FieldAt(k) != nil; k++ {
					v := []byte{'0' + byte(r.IntN(10)), '0' + byte(r.IntN(10)), '0' + byte(r.IntN(10))}
					if fd := m.Type.FieldAt(k); fd.Kind == codec.Uint {
						v = make([]byte, fd.Width)
					} else if fd.Kind <= codec.Text && r.IntN(4) == 0 {
						v = bytes.Repeat(v, 1<<10)
					}
					m.Args = append(m.Args, v)
				}
				var f codec.Frame
				if b, err := p.NewSession(codec.Options{WaiveAll: true}).Append(nil, from, &m); err != nil {
					t.Fatal(err)
				} else if _, err := sessions[id].Decode(from, b, &f); err != nil {
					continue
				}
				j.Message(id, &f, int64(i), nil)
				if j.Budget.used > limit {
					t.Fatalf("message %d: %d entries, expected at most %d", i, j.Budget.used, limit)
				}
				reached = max(reached, j.Budget.used)
			}
			if reached < limit*9/10 {
				t.Errorf("only %d entries of %d were used", reached, limit)
			}
			all := heap()
			runtime.KeepAlive(j)
			for id := range sessions {
				j.End(id, codec.Peer, true, messages)
			}
			if len(j.conns) > 0 || j.Budget.used != j.size {
				t.Errorf("after the end of all connections %d are left, with %d entries", len(j.conns), j.Budget.used-j.size)
			}
			j = nil
			if size := all - heap(); size > limit*500 {
				t.Errorf("%d bytes for %d entries", size, limit)
			}
			runtime.KeepAlive(sessions)
		})
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
