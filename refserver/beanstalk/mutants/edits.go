package mutants

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"

	"jobwire/refserver/inject"
)

var (
	number  = inject.Number
	decimal = inject.Decimal
)

// text is a condition on the text of a message, which may be illegal.
func text(pattern string) inject.When {
	re := regexp.MustCompile(pattern)
	return func(m *message) bool { return re.MatchString(m.Text()) }
}

// readAs reads an illegal command that matches the pattern as another, in which $1 and so on stand
// for the pattern's groups.
func readAs(pattern, as string) inject.Edit {
	re := regexp.MustCompile(pattern)
	return inject.On(inject.Illegal, text(pattern), func(m *message) {
		m.Drop()
		m.Peer.Feed(re.ReplaceAllString(m.Text(), as))
	})
}

// instead sends a job in place of a reply, if there is one for which is holds.
func instead(reply, as string, is func(m *message, j *job) bool) inject.Edit {
	return inject.Out(reply, nil, func(m *message) {
		if j := m.Find(func(j *job) bool { return is(m, j) }); j != nil {
			m.Become(as, j.ID, j.Data)
		}
	})
}

// figures are statistics.
type figures map[string]string

func (f figures) number(key string) int { return number(f[key]) }

func figuresOf(args []string) figures {
	all := figures{}
	for pair := range slices.Chunk(args, 2) {
		all[pair[0]] = pair[1]
	}
	return all
}

// ask returns the statistics that the machine gives a peer, or nil if it has none.
func ask(p *peer, command string, args ...string) figures {
	m := p.Ask(command, args...)
	if m.Name != "stats-reply" {
		return nil
	}
	return figuresOf(m.Args)
}

// figure changes one figure in the reply to a command.
func figure(command, key string, change func(m *message, all figures) string) inject.Edit {
	return inject.Out("stats-reply", inject.CauseIs(command), func(m *message) {
		all := figuresOf(m.Args)
		for pair := range slices.Chunk(m.Args, 2) {
			if pair[0] == key {
				pair[1] = change(m, all)
			}
		}
	})
}

// shownIf changes one figure to a value if is holds. j is the job that the figures are about, or an empty one.
func shownIf(command, key, value string, is func(j *job, all figures) bool) inject.Edit {
	return figure(command, key, func(m *message, all figures) string {
		j := m.ByID(all["id"])
		if j == nil {
			j = new(job)
		}
		if is(j, all) {
			return value
		}
		return all[key]
	})
}

// sum changes one figure to the sum of others.
func sum(command, key string, of ...string) inject.Edit {
	return figure(command, key, func(_ *message, all figures) string {
		n := 0
		for _, k := range of {
			n += all.number(k)
		}
		return decimal(n)
	})
}

// sameAs changes one figure to another.
func sameAs(command, key, other string) inject.Edit {
	return figure(command, key, func(_ *message, all figures) string { return all[other] })
}

// atMost limits a figure.
func atMost(command, key string, limit int) inject.Edit {
	return figure(command, key, func(_ *message, all figures) string { return decimal(min(all.number(key), limit)) })
}

// always changes one figure to a value.
func always(command, key, value string) inject.Edit {
	return figure(command, key, func(*message, figures) string { return value })
}

// without removes a figure.
func without(command, key string) inject.Edit {
	return inject.Out("stats-reply", inject.CauseIs(command), func(m *message) {
		if i := slices.Index(m.Args, key); i >= 0 {
			m.Args = slices.Delete(m.Args, i, i+2)
		}
	})
}

// above reports whether a decimal number is limit or more.
func above(number string, limit uint64) bool {
	n, err := strconv.ParseUint(number, 10, 64)
	return err != nil || n >= limit
}

// inBody reports whether b is a put with an incomplete body.
func inBody(b []byte) bool {
	return bytes.HasPrefix(b, []byte("put ")) && bytes.Contains(b, []byte("\r\n"))
}
