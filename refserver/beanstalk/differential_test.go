package beanstalk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"jobwire/internal/peers"
)

// TestLikeBeanstalkd sends the same random commands to beanstalkd and to this server. All replies must be the
// same, including job IDs, bodies and statistics, except for values that depend on time or on the process.
func TestLikeBeanstalkd(t *testing.T) {
	commands := 2000
	if testing.Short() {
		commands = 500
	}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			real := peers.Start(t, "beanstalkd")
			d := &differential{t: t, rng: rand.New(rand.NewPCG(seed, 7)), ours: serveTCP(t), real: real.Addr()}
			for range 4 {
				d.pairs = append(d.pairs, &pair{})
				d.dial(len(d.pairs) - 1)
			}
			for range commands {
				d.step()
			}
		})
	}
}

// differential is one run.
type differential struct {
	t          *testing.T
	rng        *rand.Rand
	ours, real string // addresses
	pairs      []*pair
	lastJob    int
	reserves   int
	log        []string // the last commands
}

// pair is a pair of corresponding connections, one to each server.
type pair struct {
	ours, real peerOf
	waiting    bool // for the reply to a reserve
}

// dial opens a pair of connections, and waits until both servers have accepted them.
func (d *differential) dial(i int) {
	*d.pairs[i] = pair{ours: dialTCP(d.t, d.ours), real: dialTCP(d.t, d.real)}
	d.ask(i, "use", "a")
}

// step sends one command, or ends a connection.
func (d *differential) step() {
	i := d.rng.IntN(len(d.pairs))
	for d.pairs[i].waiting {
		i = (i + 1) % len(d.pairs)
	}
	others := slices.ContainsFunc(d.pairs, func(p *pair) bool { return p.waiting })
	switch r := d.rng.IntN(400); {
	case others: // at most one job may become ready: of several, beanstalkd assigns an arbitrary one
	case r == 0:
		d.hangUp(i)
		return
	case r < 20:
		d.reserve(i)
		return
	}
	cmd := d.command(others)
	d.ask(i, cmd[0], cmd[1:]...)
	d.served()
}

// number returns a random number below n.
func (d *differential) number(n int) string { return fmt.Sprint(d.rng.IntN(n)) }

// job returns the ID of one of the last jobs, or of one that does not exist yet.
func (d *differential) job() string { return fmt.Sprint(max(1, d.lastJob+2-d.rng.IntN(25))) }

func (d *differential) tube() string {
	return []string{"a", "b", "c", "default", "a-longer/name.with;$_(all)+1"}[d.rng.IntN(5)]
}

// seconds returns a time of 0, or one that does not pass before the test ends.
func (d *differential) seconds() string {
	return []string{"0", "0", "1000", "2000", "4294967295"}[d.rng.IntN(5)]
}

// command generates a command. It omits rejected puts, which use up an ID in beanstalkd, and commands with
// missing arguments, to which beanstalkd replies UNKNOWN_COMMAND instead of BAD_FORMAT.
func (d *differential) command(others bool) []string {
	switch d.rng.IntN(30) {
	case 0, 1, 2, 3, 4, 5:
		d.lastJob++
		body := strings.Repeat("x\r\n", d.rng.IntN(4)) + d.number(1000)
		return []string{"put", d.number(2000), d.seconds(), []string{"1000", "2000"}[d.rng.IntN(2)], body}
	case 6, 7, 8, 9:
		return []string{"reserve-with-timeout", "0"}
	case 10:
		return []string{"reserve-job", d.job()}
	case 11, 12:
		return []string{"delete", d.job()}
	case 13, 14:
		return []string{"release", d.job(), d.number(2000), d.seconds()}
	case 15, 16:
		return []string{"bury", d.job(), d.number(2000)}
	case 17:
		return []string{"touch", d.job()}
	case 18:
		return []string{"watch", d.tube()}
	case 19:
		return []string{"ignore", d.tube()}
	case 20:
		return []string{"use", d.tube()}
	case 21:
		return []string{"peek", d.job()}
	case 22:
		return []string{[]string{"peek-ready", "peek-delayed", "peek-buried"}[d.rng.IntN(3)]}
	case 23:
		if others {
			return []string{"kick", d.number(2)}
		}
		return []string{"kick", d.number(4)}
	case 24:
		return []string{"kick-job", d.job()}
	case 25:
		return []string{"stats-job", d.job()}
	case 26:
		return []string{"stats-tube", d.tube()}
	case 27:
		return []string{"stats"}
	case 28:
		return []string{"pause-tube", d.tube(), []string{"0", "0", "0", "1000"}[d.rng.IntN(4)]}
	}
	return []string{[]string{"list-tubes", "list-tube-used", "list-tubes-watched"}[d.rng.IntN(3)]}
}

func (d *differential) send(i int, name string, args ...string) {
	d.log = append(d.log, fmt.Sprintf("%d: %s %q", i, name, args))
	d.log = d.log[max(0, len(d.log)-40):]
	d.pairs[i].ours.Send(name, args...)
	d.pairs[i].real.Send(name, args...)
}

// ask sends a command on both connections of a pair and compares the replies.
func (d *differential) ask(i int, name string, args ...string) {
	d.send(i, name, args...)
	d.compare(i)
}

func (d *differential) compare(i int) {
	p := d.pairs[i]
	ours, real := steady(p.ours.Next()), steady(p.real.Next())
	if ours != real {
		d.t.Fatalf("the replies differ:\nbeanstalkd: %s\nours:       %s\n%s", real, ours, strings.Join(d.log, "\n"))
	}
}

// reserve sends a reserve, which may block.
func (d *differential) reserve(i int) {
	d.send(i, "reserve")
	d.reserves++
	d.pairs[i].waiting = true
	by := d.pairs[(i+1)%len(d.pairs)]
	for _, p := range []peerOf{by.ours, by.real} {
		waitUntil(d.t, func() bool { return p.stats("stats", "cmd-reserve") == fmt.Sprint(d.reserves) })
	}
	d.served()
}

// served compares whether a connection that waits has got its job.
func (d *differential) served() {
	for i, p := range d.pairs {
		if !p.waiting {
			continue
		}
		by := d.pairs[(i+1)%len(d.pairs)]
		const key = "current-waiting"
		ours, real := by.ours.stats("stats", key), by.real.stats("stats", key)
		if ours != real {
			d.t.Fatalf("waiting: %s, in beanstalkd %s\n%s", ours, real, strings.Join(d.log, "\n"))
		}
		if ours == "0" {
			p.waiting = false
			d.compare(i)
		}
	}
}

// hangUp closes a connection and opens it again.
func (d *differential) hangUp(i int) {
	d.log = append(d.log, fmt.Sprintf("%d: (hangs up)", i))
	d.pairs[i].ours.Conn.Close()
	d.pairs[i].real.Conn.Close()
	by := d.pairs[(i+1)%len(d.pairs)]
	if by.waiting {
		by = d.pairs[(i+2)%len(d.pairs)]
	}
	for _, p := range []peerOf{by.ours, by.real} {
		waitUntil(d.t, func() bool { return p.stats("stats", "current-connections") == fmt.Sprint(len(d.pairs)-1) })
	}
	d.dial(i)
	d.served()
}

// variableStats are the statistics that differ between two servers or between two times.
var variableStats = []string{"age", "time-left", "pause-time-left", "total-connections", "pid", "version",
	"rusage-utime", "rusage-stime", "uptime", "binlog-max-size", "id", "hostname", "os", "platform", "cmd-stats"}

// steady formats a reply without values that may differ.
func steady(name string, args []string) string {
	switch name {
	case "list-reply":
		slices.Sort(args)
	case "stats-reply":
		for i := 0; i+1 < len(args); i += 2 {
			if slices.Contains(variableStats, args[i]) {
				args[i+1] = "*"
			}
		}
	}
	return fmt.Sprintf("%s %q", name, args)
}
