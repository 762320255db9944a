package gearmonkey

import (
	"bytes"
	"slices"
	"unique"
)

// fieldOrder is the order in which the fields of hashes were set. Redis keeps it for small hashes; miniredis
// sorts the fields. If not all fields of a hash are known here, they stay sorted.
type fieldOrder struct {
	of    map[key][]unique.Handle[string]
	limit int // number of hashes at which deleted ones are removed
}

// mostFields is the maximum number of fields that Redis keeps in order.
const mostFields = 128

func (o *fieldOrder) init() {
	o.limit = leastLimit
	o.forgetAll()
}

func (o *fieldOrder) forgetAll() { o.of = map[key][]unique.Handle[string]{} }

// sweep removes deleted hashes when there may be many of them.
func (m *Machine) sweep() {
	o := &m.fields
	if len(o.of) <= o.limit {
		return
	}
	for k := range o.of {
		if !m.redis.DB(k.db).Exists(k.name) {
			delete(o.of, k)
		}
	}
	o.limit = max(leastLimit, 2*len(o.of))
}

// setFields handles commands that set fields of a hash.
func setFields(c *call) {
	k := key{c.db(), c.words[1]}
	old := integer(c.ask("EXISTS", k.name)) == 1
	at := len(c.out)
	c.again()
	if c.out[at] == '-' {
		return
	}
	order, known := c.m.fields.of[k]
	switch {
	case !old:
		order = nil
	case !known:
		return
	}
	for i := 2; i+1 < len(c.words); i += 2 {
		if f := unique.Make(c.words[i]); !slices.Contains(order, f) {
			order = append(order, f)
		}
		if len(order) > mostFields {
			delete(c.m.fields.of, k)
			return
		}
	}
	c.m.fields.of[k] = order
}

// carry records that a key was copied or renamed. The order of a hash that no longer exists does no harm.
func (o *fieldOrder) carry(from, to key) {
	if order, known := o.of[from]; known {
		o.of[to] = slices.Clone(order)
	} else {
		delete(o.of, to)
	}
}

// deleteFields handles HDEL.
func deleteFields(c *call) {
	c.again()
	k := key{c.db(), c.words[1]}
	if order, known := c.m.fields.of[k]; known {
		c.m.fields.of[k] = slices.DeleteFunc(order, func(f unique.Handle[string]) bool {
			return slices.Contains(c.words[2:], f.Value())
		})
	}
}

// listFields handles HGETALL, HKEYS and HVALS.
func listFields(c *call) {
	s := c.replied([]string{"HGETALL", c.words[1]})
	defer c.m.free(s)
	reply := s.buf.Bytes() // not copied: it may be large
	if reply[0] == '-' {
		c.out = append(c.out, reply...)
		return
	}
	values := map[string][]byte{}
	var names []string
	for rest := reply[bytes.IndexByte(reply, '\n')+1:]; len(rest) > 0; {
		var name, value []byte
		name, rest = cutBulk(rest)
		value, rest = cutBulk(rest)
		names = append(names, string(name))
		values[string(name)] = value
	}
	c.m.fields.sort(key{c.db(), c.words[1]}, names)

	c.out = slices.Grow(c.out, len(reply))
	n := int64(len(names))
	switch all := c.command.name == "hgetall"; {
	case all && c.resp3():
		c.header('%', n)
	case all:
		c.header('*', 2*n)
	default:
		c.header('*', n)
	}
	for _, name := range names {
		if c.command.name != "hvals" {
			c.bulk(name)
		}
		if c.command.name != "hkeys" {
			c.out = bulk(c.out, values[name])
		}
	}
}

// sort orders the names of a hash's fields, if all of them are known.
func (o *fieldOrder) sort(k key, names []string) {
	order := map[string]int{}
	for i, f := range o.of[k] {
		order[f.Value()] = i
	}
	for _, name := range names {
		if _, known := order[name]; !known {
			return
		}
	}
	slices.SortFunc(names, func(a, b string) int { return order[a] - order[b] })
}

// cutBulk reads a bulk string.
func cutBulk[S []byte | string](s S) (value, rest S) {
	n, used := numberLine(s)
	return s[used : used+n], s[used+n+len("\r\n"):]
}
