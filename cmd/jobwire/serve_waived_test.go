package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/refserver"
)

// busyWorker has, for each protocol, bytes that make their sender a worker with a job, and a request that a server answers
// at any time.
var busyWorker = map[string]struct{ job, ask string }{
	"gearman":    {"\x00REQ\x00\x00\x00\x12\x00\x00\x00\x04f\x00\x00x\x00REQ\x00\x00\x00\x01\x00\x00\x00\x01f\x00REQ\x00\x00\x00\x09\x00\x00\x00\x00", "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x01x"},
	"beanstalk":  {"put 0 0 60 1\r\nx\r\nreserve\r\n", "list-tubes\r\n"},
	"danga":      {"GEAR\x01\x00\x00\x00\x01fGEAR\x04\x00\x00\x00\x06f\x00\x00\x00\x00xGEAR\x06\x00\x00\x00\x00", "GEAR\x06\x00\x00\x00\x00"},
	"gearmonkey": {"*3\r\n$5\r\nLPUSH\r\n$14\r\nqueue:f:normal\r\n$1\r\n1\r\n*3\r\n$5\r\nBRPOP\r\n$14\r\nqueue:f:normal\r\n$1\r\n1\r\n", "*1\r\n$4\r\nPING\r\n"},
}

// TestServeWaived sends the vectors of the corpus, and their messages with the last arguments left out or one argument
// changed, to servers that waive one rule of their protocol, for each rule, and to a server that waives all rules. No
// message may crash the server or stop it from replying, whether or not its sender has a job.
func TestServeWaived(t *testing.T) {
	t.Parallel()
	for _, sys := range catalog.All() {
		t.Run(sys.Protocol.Name, func(t *testing.T) {
			t.Parallel()
			inputs := hostile(t, sys.Protocol)
			all := make([]codec.RuleID, 0, len(sys.Protocol.Rules))
			for k := range sys.Protocol.Rules {
				all = append(all, sys.Protocol.Rules[k].ID)
			}
			strict := decodedAs(sys.Protocol, nil, inputs)
			for k := range len(all) + 1 {
				waive := all
				if k < len(all) {
					waive = all[k : k+1]
				}
				// Skip inputs that the waiver does not affect: those that the session decodes as without it.
				var changed [][]byte
				for n, as := range decodedAs(sys.Protocol, waive, inputs) {
					if k == 0 || k == len(all) || as != strict[n] {
						changed = append(changed, inputs[n])
					}
				}
				if len(changed) > 0 {
					survives(t, sys, waive, changed)
				}
			}
		})
	}
}

// survives sends inputs to a server that waives rules, each on a connection of its own, and then a request on another
// connection.
func survives(t *testing.T, sys *catalog.Entry, waive []codec.RuleID, inputs [][]byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	machine := sys.Server(pflag.NewFlagSet("", pflag.ContinueOnError))()
	w := &watcher{out: newSpool(io.Discard, "%s"), bytes: true, roles: map[uint64]string{}, printer: transcript.Printer{Protocol: sys.Protocol, Fold: 8}}
	defer w.out.close()
	srv := refserver.New(machine, refserver.Options{Protocol: sys.Protocol, Codec: codec.Options{Waive: waive}, Linger: time.Millisecond, Trace: w.message})
	defer srv.Close()
	h := busyWorker[sys.Protocol.Name]
	asker, far := net.Pipe()
	defer asker.Close()
	go srv.ServeConn(ctx, far)
	asker.SetDeadline(time.Now().Add(time.Minute))
	ask := func() {
		t.Helper()
		if _, err := io.WriteString(asker, h.ask); err != nil {
			t.Fatalf("waiving %v: %v", waive, err)
		}
		if _, err := asker.Read(make([]byte, 4096)); err != nil {
			t.Fatalf("waiving %v: no reply on another connection: %v", waive, err)
		}
	}
	ask() // opens this connection first: an input may stop the server from accepting connections
	for _, in := range inputs {
		for _, before := range []string{"", h.job} {
			near, far := net.Pipe()
			go io.Copy(io.Discard, near)
			done := make(chan struct{})
			go func() { srv.ServeConn(ctx, far); close(done) }()
			near.Write(slices.Concat([]byte(before), in))
			near.Close()
			<-done
		}
	}
	ask()
}

// hostile returns the bytes of the vectors of a protocol, and their variants from shortened.
func hostile(t *testing.T, p *codec.Protocol) (all [][]byte) {
	t.Helper()
	for _, file := range []string{"accept.wire", "reject.wire"} {
		name := path.Join(p.Name, file)
		src, err := corpus.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		vectors, err := transcript.Parse(p, name, src)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vectors {
			var sent []byte
			for i := range v.Steps {
				sent = append(sent, v.Steps[i].Choices[0].Bytes...)
			}
			all = append(all, sent)
		}
	}
	return append(all, shortened(p, all)...)
}

// shortened returns variants of the messages in inputs: with fewer arguments, and with one argument empty or replaced by
// an unusual value.
func shortened(p *codec.Protocol, inputs [][]byte) (all [][]byte) {
	nonStrict := codec.Options{WaiveAll: true}
	add := func(t *codec.Type, args ...[]byte) {
		if b, err := p.NewSession(nonStrict).Append(nil, codec.Peer, &codec.Message{Type: t, Args: args}); err == nil {
			all = append(all, b)
		}
	}
	for _, in := range inputs {
		s := p.NewSession(nonStrict)
		var f codec.Frame
		var m codec.Message
		for len(in) > 0 {
			n, err := s.Decode(codec.Peer, in, &f)
			if err != nil || n == 0 || len(f.Raw) > 1<<12 {
				break
			}
			in = in[n:]
			f.Message(&m)
			args := slices.Clone(m.Args)
			for k := range args {
				add(f.Type, args[:k]...)
				for _, v := range []string{"", "\xff", "99999999999999999999"} {
					changed := slices.Clone(args)
					changed[k] = []byte(v)
					add(f.Type, changed...)
				}
			}
		}
	}
	slices.SortFunc(all, bytes.Compare)
	return slices.CompactFunc(all, bytes.Equal)
}

// decodedAs describes, for each input, the errors and the number of messages when a session that waives rules decodes it.
func decodedAs(p *codec.Protocol, waive []codec.RuleID, inputs [][]byte) []string {
	var all []string
	for _, in := range inputs {
		s := p.NewSession(codec.Options{Waive: waive})
		var f codec.Frame
		as := ""
		for len(in) > 0 {
			n, err := s.Decode(codec.Peer, in, &f)
			if err != nil {
				as += err.Error()
			}
			if n == 0 || n > len(in) || err == codec.ErrShort {
				break
			}
			as += ";"
			in = in[n:]
		}
		all = append(all, as)
	}
	return all
}
