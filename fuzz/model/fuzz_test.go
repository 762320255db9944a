package model

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"jobwire/codec/transcript"
)

// Whole conversations with the reference servers, which must do what the models say.

func FuzzGearman(f *testing.F)    { conversations(f, "gearman") }
func FuzzDanga(f *testing.F)      { conversations(f, "danga") }
func FuzzGearMonkey(f *testing.F) { conversations(f, "gearmonkey") }
func FuzzBeanstalk(f *testing.F)  { conversations(f, "beanstalk") }

// moveSize is how many bytes of input make a move, and mostMoves how many are made.
const (
	moveSize  = 11
	mostMoves = 60
)

// moveOf reads a move.
func (d *Diction) moveOf(b []byte) Move {
	mv := Move{Conn: b[1] % uint8(len(d.actors)), Says: b[2]}
	switch {
	case b[0] < 16:
		mv.Deed = Leave
	case b[0] < 20:
		mv.Deed = Wait
	}
	copy(mv.Args[:], b[3:])
	return mv
}

func conversations(f *testing.F, protocol string) {
	var row protocolRow
	for _, r := range protocols {
		if r.p.Name == protocol {
			row = r
		}
	}
	d := DictionOf(row.p)
	// Everything that anybody may say, alone and behind the others.
	r := rand.New(rand.NewPCG(8, 8))
	var all []byte
	for conn := range d.actors {
		for says := range d.rows[conn] {
			if says > 0 && d.rows[conn][says] == d.rows[conn][says-1] {
				continue
			}
			move := []byte{255, byte(conn), byte(says), byte(r.IntN(4)), byte(r.IntN(4)), byte(r.IntN(4)), 0, 0, 0, 0, 128}
			f.Add(move)
			all = append(all, move...)
		}
	}
	for range 40 {
		var b []byte
		for range 4 + r.IntN(30) {
			at := r.IntN(len(all)/moveSize) * moveSize
			b = append(b, all[at:at+moveSize]...)
			b[len(b)-moveSize] = byte(r.IntN(256))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		synctest.Test(t, func(t *testing.T) {
			trial := inMemory(row.p, d, row.machine)()
			defer trial.end()
			for n := 0; len(b) >= moveSize && n < mostMoves; n++ {
				if err := trial.talk.Do(d.moveOf(b)); err != nil {
					var text strings.Builder
					transcript.Lines(&text, trial.talk.Script())
					t.Fatalf("%v\n%s", err, &text)
				}
				b = b[moveSize:]
			}
		})
	})
}
