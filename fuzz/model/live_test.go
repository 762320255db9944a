package model

import (
	"context"
	"net"
	"time"

	"jobwire/codec"
	"jobwire/internal/target"
)

// live is a wire to a server over TCP.
type live struct {
	server   target.Target
	ends     [maxPeers]*liveEnd
	news     chan news
	kept     []news // read, but not asked for yet
	quit     chan struct{}
	patience time.Duration // how long a server is given to end a connection that we have ended
}

type liveEnd struct {
	*net.TCPConn
	done chan struct{} // closed when nothing more can be read
}

// news is what has been read from a connection; b is nil when it has ended.
type news struct {
	conn int
	end  *liveEnd
	b    []byte
}

func newLive(t target.Target, p *codec.Protocol) *live {
	w := &live{server: t, news: make(chan news, 64), quit: make(chan struct{}), patience: 2 * time.Second}
	if keeps[p.Name] {
		w.patience = 100 * time.Millisecond
	}
	return w
}

// keeps are the protocols whose servers keep a connection of which only we have ended our direction,
// if its client is due something.
var keeps = map[string]bool{"gearman": true, "danga": true}

func (w *live) Open(conn int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := target.Dial(ctx, w.server)
	if err != nil {
		return err
	}
	e := &liveEnd{TCPConn: c.(*net.TCPConn), done: make(chan struct{})}
	w.ends[conn] = e
	go func() {
		defer close(e.done)
		for {
			b := make([]byte, 4096)
			n, err := e.Read(b)
			say := news{conn, e, b[:n]}
			if err != nil {
				say.b = nil
			}
			select {
			case w.news <- say:
			case <-w.quit:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return nil
}

func (w *live) Send(conn int, b []byte) error {
	w.ends[conn].Write(b) // a failure shows as the connection's end
	return nil
}

// Close ends our direction and waits until the server has ended its own, so that it
// surely knows. One that still has something to say is given up.
func (w *live) Close(conn int) {
	e := w.ends[conn]
	if e == nil {
		return
	}
	w.ends[conn] = nil
	e.CloseWrite()
	late := time.NewTimer(w.patience)
	defer late.Stop()
	for ended := false; !ended; {
		select {
		case <-e.done:
			ended = true
		case <-late.C:
			ended = true
		case n := <-w.news:
			if n.end != e && n.end == w.ends[n.conn] {
				w.kept = append(w.kept, n)
			}
		}
	}
	e.SetLinger(0)
	e.TCPConn.Close()
}

func (w *live) Receive(patience time.Duration) (int, []byte) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for len(w.kept) > 0 {
		n := w.kept[0]
		w.kept = w.kept[1:]
		if n.end == w.ends[n.conn] {
			return n.conn, n.b
		}
	}
	for {
		select {
		case n := <-w.news:
			if n.end == w.ends[n.conn] {
				return n.conn, n.b
			}
			continue
		default:
		}
		select {
		case n := <-w.news:
			if n.end == w.ends[n.conn] {
				return n.conn, n.b
			}
		case <-late.C:
			return -1, nil
		}
	}
}

func (w *live) Exact() bool          { return false }
func (w *live) Wait(d time.Duration) { <-time.After(d) }

// end gives up what is still open.
func (w *live) end() {
	close(w.quit)
	for _, e := range w.ends {
		if e != nil {
			e.SetLinger(0)
			e.TCPConn.Close()
			<-e.done
		}
	}
}
