package gearmonkey

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkCycle measures the whole life of a job over loopback, as in the specification: a client that waits
// for the end, and a worker.
func BenchmarkCycle(b *testing.B) {
	addr := serveTCP(b)
	c, w := dialTCP(b, addr), dialTCP(b, addr)
	w.send("SCRIPT", "LOAD", script)
	w.next()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; n < b.N; {
			w.send("EVALSHA", scriptSHA1, "1", "queue:f:scheduled", "1700000000")
			w.next()
			w.send("BRPOP", "queue:f:high", "queue:f:normal", "queue:f:low", "1")
			popped := strings.Fields(w.next())
			if popped[0] != "*2" {
				continue
			}
			n++
			id := popped[4]
			var pipe strings.Builder
			fmt.Fprintf(&pipe, "HGET job:f:%s input\r\nPUBLISH channel:f start:%s\r\nHMSET job:f:%s status busy\r\n", id, id, id)
			fmt.Fprintf(&pipe, "HMSET job:f:%s status success output done\r\nEXPIRE job:f:%s 90000\r\n", id, id)
			fmt.Fprintf(&pipe, "PUBLISH channel:f finish:%s\r\nLPUSH lock:f:%s OK\r\nEXPIRE lock:f:%s 10\r\n", id, id, id)
			w.raw(pipe.String())
			for range 8 {
				w.next()
			}
		}
	}()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		c.send("INCR", "uid:f")
		id := c.next()[1:]
		c.raw(fmt.Sprintf("HMSET job:f:%s status idle input work\r\nPUBLISH channel:f create:%s\r\nLPUSH queue:f:normal %s\r\nBRPOP lock:f:%s 0\r\n", id, id, id, id))
		for range 4 {
			c.next()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	<-done
}

// BenchmarkCommand measures single commands, pipelined in groups of a hundred, while there are keys that
// expire.
func BenchmarkCommand(b *testing.B) {
	for _, command := range []string{
		"PING", "GET count:f", "HMSET job:f:1 status busy", "HGETALL job:f:1", "EXPIRE job:f:1 90000", "PUBLISH channel:f x",
		"BRPOP empty queue:f:normal 0", "EVALSHA " + scriptSHA1 + " 1 queue:f:scheduled 5",
	} {
		b.Run(strings.Fields(command)[0], func(b *testing.B) {
			c := dialTCP(b, serveTCP(b))
			const keys = 2000
			var fill strings.Builder
			for i := range keys {
				fmt.Fprintf(&fill, "SET k%d v EX 90000\r\nLPUSH queue:f:normal %d\r\n", i, i)
			}
			go c.raw(fill.String())
			for range 2 * keys {
				c.next()
			}
			c.send("SCRIPT", "LOAD", script)
			c.next()
			const window = 100
			line := command + "\r\n"
			if strings.HasPrefix(command, "BRPOP") {
				line += "LPUSH queue:f:normal 1\r\n"
			}
			lines := strings.Repeat(line, window)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += window {
				c.raw(lines)
				for range strings.Count(lines, "\r\n") {
					c.next()
				}
			}
		})
	}
}
