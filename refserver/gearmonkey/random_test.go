package gearmonkey

import (
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/refserver"
)

// TestAnyWords checks that the replies to commands with any words are legal messages, and that the server
// continues.
func TestAnyWords(t *testing.T) {
	var names []string
	for name := range commands {
		if name != "shutdown" && name != "quit" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	options := strings.Fields("a a b b s h z x 0 0 1 2 -1 -2 1.5 99999999999 -99999999999 * $ > ( [b + - x LEFT RIGHT MIN COUNT STREAMS BLOCK " +
		"EX PX NX XX GT LT WITHSCORES LIMIT BY GROUP g LOAD EXISTS CREATE MKSTREAM AFTER AND DB REPLACE MATCH TYPE list SETNAME ON " +
		"channels numsub list id 3 2 KEEPTTL GET BYSCORE BYLEX REV STORE inf nan +inf")
	options = append(options, "", "\r\n", "return redis.call('LPUSH', KEYS[1], 1)", "return {KEYS, ARGV, redis}", "return redis.pcall(ARGV[1], ARGV[2])")
	trace := func(_ *refserver.Conn, from codec.Side, f *codec.Frame, raw []byte, err *codec.Error) {
		if from == codec.Server && err != nil {
			t.Errorf("we sent %q: %v", raw, err)
		}
	}
	for seed := range uint64(3) {
		bubble(t, refserver.Options{Trace: trace}, func(t *testing.T, m *Machine, dial func() *client) {
			rng := rand.New(rand.NewPCG(seed, 3))
			control := dial()
			for range 60 {
				c := dial()
				go io.Copy(io.Discard, c.nc)
				for range 60 {
					words := []string{names[rng.IntN(len(names))]}
					for range rng.IntN(7) {
						words = append(words, options[rng.IntN(len(options))])
					}
					c.send(words...)
					if m.byID()[1].wait != nil && rng.IntN(3) > 0 {
						break // all later commands would wait, too
					}
				}
				if got := control.ask("PING"); got != "+PONG" {
					t.Fatalf("PING: %s", got)
				}
				c.leave()
			}
		})
	}
}
