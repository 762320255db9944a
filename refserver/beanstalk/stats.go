package beanstalk

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// figure is one line of statistics about an x: a key, and the function that computes its value. The tables
// below have the keys of the specification in the order of real servers, and the keys that newer servers add
// ("Other Commands").
type figure[T any] struct {
	key   string
	value func(m *Machine, x T) string
}

// report sends statistics.
func report[T any](m *Machine, p *peer, figures []figure[T], x T) {
	args := make([][]byte, 0, 2*len(figures))
	for _, f := range figures {
		args = append(args, []byte(f.key), []byte(f.value(m, x)))
	}
	p.conn.Send(statsReply, args...)
}

func decimal[T int | int64 | uint32 | uint64](n T) string { return strconv.FormatInt(int64(n), 10) }

// whole formats a duration as a number of complete seconds.
func whole(d int64) string { return decimal(max(0, d) / int64(time.Second)) }

// quoted formats any text as a YAML string.
func quoted(s string) string {
	return `"` + strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return '_'
		}
		return r
	}, s) + `"`
}

var jobFigures = []figure[*job]{
	{"id", func(_ *Machine, j *job) string { return strconv.FormatUint(j.id, 10) }},
	{"tube", func(_ *Machine, j *job) string { return string(j.tube.name) }},
	{"state", func(_ *Machine, j *job) string { return stateNames[j.state] }},
	{"pri", func(_ *Machine, j *job) string { return decimal(j.priority) }},
	{"age", func(m *Machine, j *job) string { return whole(m.now() - j.created) }},
	{"delay", func(_ *Machine, j *job) string { return decimal(j.delay) }},
	{"ttr", func(_ *Machine, j *job) string { return decimal(j.ttr) }},
	{"time-left", func(m *Machine, j *job) string {
		if j.state == reserved || j.state == delayed {
			return whole(j.readyAt() - m.now())
		}
		return "0"
	}},
	{"file", none[*job]},
	{"reserves", func(_ *Machine, j *job) string { return decimal(j.reserves) }},
	{"timeouts", func(_ *Machine, j *job) string { return decimal(j.timeouts) }},
	{"releases", func(_ *Machine, j *job) string { return decimal(j.releases) }},
	{"buries", func(_ *Machine, j *job) string { return decimal(j.buries) }},
	{"kicks", func(_ *Machine, j *job) string { return decimal(j.kicks) }},
}

// none is the value of statistics about features that this server does not have, such as a binlog.
func none[T any](*Machine, T) string { return "0" }

var tubeFigures = []figure[*tube]{
	{"name", func(_ *Machine, t *tube) string { return string(t.name) }},
	{"current-jobs-urgent", func(_ *Machine, t *tube) string { return decimal(t.urgent) }},
	{"current-jobs-ready", func(_ *Machine, t *tube) string { return decimal(t.in[ready]) }},
	{"current-jobs-reserved", func(_ *Machine, t *tube) string { return decimal(t.in[reserved]) }},
	{"current-jobs-delayed", func(_ *Machine, t *tube) string { return decimal(t.in[delayed]) }},
	{"current-jobs-buried", func(_ *Machine, t *tube) string { return decimal(t.in[buried]) }},
	{"total-jobs", func(_ *Machine, t *tube) string { return decimal(t.total) }},
	{"current-using", func(_ *Machine, t *tube) string { return decimal(t.using) }},
	{"current-watching", func(_ *Machine, t *tube) string { return decimal(t.watching) }},
	{"current-waiting", func(_ *Machine, t *tube) string { return decimal(t.waiters.len) }},
	{"cmd-delete", func(_ *Machine, t *tube) string { return decimal(t.deletes) }},
	{"cmd-pause-tube", func(_ *Machine, t *tube) string { return decimal(t.pauses) }},
	{"pause", func(_ *Machine, t *tube) string { return decimal(t.pause) }},
	{"pause-time-left", func(m *Machine, t *tube) string {
		if t.pause == 0 {
			return "0"
		}
		return whole(t.resumes - m.now())
	}},
}

var serverFigures = []figure[*peer]{
	{"current-jobs-urgent", func(m *Machine, _ *peer) string { return decimal(m.urgent) }},
	{"current-jobs-ready", func(m *Machine, _ *peer) string { return decimal(m.in[ready]) }},
	{"current-jobs-reserved", func(m *Machine, _ *peer) string { return decimal(m.in[reserved]) }},
	{"current-jobs-delayed", func(m *Machine, _ *peer) string { return decimal(m.in[delayed]) }},
	{"current-jobs-buried", func(m *Machine, _ *peer) string { return decimal(m.in[buried]) }},
	commands("put"), commands("peek"), commands("peek-ready"), commands("peek-delayed"), commands("peek-buried"),
	commands("reserve"), commands("reserve-with-timeout"), commands("delete"), commands("release"),
	commands("use"), commands("watch"), commands("ignore"), commands("bury"), commands("kick"), commands("touch"),
	commands("stats"), commands("stats-job"), commands("stats-tube"),
	commands("list-tubes"), commands("list-tube-used"), commands("list-tubes-watched"), commands("pause-tube"),
	{"job-timeouts", func(m *Machine, _ *peer) string { return decimal(m.timeouts) }},
	{"total-jobs", func(m *Machine, _ *peer) string { return decimal(m.total) }},
	{"max-job-size", func(_ *Machine, p *peer) string { return decimal(p.conn.MaxData()) }},
	{"current-tubes", func(m *Machine, _ *peer) string { return decimal(len(m.tubes)) }},
	{"current-connections", func(m *Machine, _ *peer) string { return decimal(m.peers) }},
	{"current-producers", func(m *Machine, _ *peer) string { return decimal(m.producers) }},
	{"current-workers", func(m *Machine, _ *peer) string { return decimal(m.workers) }},
	{"current-waiting", func(m *Machine, _ *peer) string { return decimal(m.waiting) }},
	{"total-connections", func(m *Machine, _ *peer) string { return decimal(m.connections) }},
	{"pid", func(*Machine, *peer) string { return decimal(os.Getpid()) }},
	{"version", func(m *Machine, _ *peer) string { return quoted(m.opts.Version) }},
	{"rusage-utime", func(*Machine, *peer) string { user, _ := cpuTime(); return precise(user) }},
	{"rusage-stime", func(*Machine, *peer) string { _, system := cpuTime(); return precise(system) }},
	{"uptime", func(m *Machine, _ *peer) string { return whole(m.now()) }},
	{"binlog-oldest-index", none[*peer]},
	{"binlog-current-index", none[*peer]},
	{"binlog-records-migrated", none[*peer]},
	{"binlog-records-written", none[*peer]},
	{"binlog-max-size", none[*peer]},
	{"draining", func(m *Machine, _ *peer) string { return strconv.FormatBool(m.draining.Load()) }},
	{"id", func(m *Machine, _ *peer) string { return quoted(m.id) }},
	{"hostname", func(m *Machine, _ *peer) string { return quoted(m.host) }},
	{"os", func(*Machine, *peer) string { os, _ := system(); return quoted(os) }},
	{"platform", func(*Machine, *peer) string { _, platform := system(); return quoted(platform) }},
}

// commands counts the commands with the name.
func commands(name string) figure[*peer] {
	i := typeNamed(name).Index
	return figure[*peer]{"cmd-" + name, func(m *Machine, _ *peer) string { return decimal(m.counts[i]) }}
}

// precise formats a duration in seconds with microseconds.
func precise(d time.Duration) string {
	return fmt.Sprintf("%d.%06d", d/time.Second, d%time.Second/time.Microsecond)
}

func showStats(m *Machine, p *peer, _ *codec.Frame)       { report(m, p, serverFigures, p) }
func showJob(m *Machine, p *peer, j *job, _ *codec.Frame) { report(m, p, jobFigures, j) }

func showTube(m *Machine, p *peer, f *codec.Frame) {
	if t := m.tubes[string(f.Arg(0))]; t != nil {
		report(m, p, tubeFigures, t)
	} else {
		p.conn.Send(notFound)
	}
}

// listTubes lists the names of all tubes, oldest first.
func listTubes(m *Machine, p *peer, _ *codec.Frame) {
	all := make([]*tube, 0, len(m.tubes))
	for _, t := range m.tubes {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *tube) int { return int(a.number) - int(b.number) })
	names := make([][]byte, len(all))
	for i, t := range all {
		names[i] = t.name
	}
	p.conn.Send(listReply, names...)
}

func listWatched(_ *Machine, p *peer, _ *codec.Frame) {
	names := make([][]byte, len(p.watches))
	for i, w := range p.watches {
		names[i] = w.tube.name
	}
	p.conn.Send(listReply, names...)
}
