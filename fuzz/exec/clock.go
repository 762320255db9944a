package exec

import (
	"strconv"
	"time"

	"jobwire/internal/target"
)

// clock is the clock of a server, which may run faster than the clock of the machine. The zero value is the clock of
// the machine.
type clock struct {
	begun time.Time // when the clock began to run faster
	times int       // how many times as fast as the clock of the machine
}

// now returns the time of the server.
func (c clock) now() time.Time {
	now := time.Now()
	if c.times <= 1 {
		return now
	}
	return now.Add(time.Duration(c.times-1) * now.Sub(c.begun))
}

// real converts a duration on the server's clock to a duration on the machine's clock.
func (c clock) real(d time.Duration) time.Duration { return d / time.Duration(max(1, c.times)) }

// at returns, as a decimal Unix time, the time on the server's clock that is the given number of seconds from now.
func (c clock) at(seconds []byte) []byte {
	n, _ := strconv.ParseInt(string(seconds), 10, 64)
	return strconv.AppendInt(nil, c.now().Unix()+n, 10)
}

// clockOf returns the clock of a server, which has run times times as fast as the clock of the machine since the
// process of the server began.
func clockOf(t target.Target, times int) clock { return clock{target.Begun(t), times} }
