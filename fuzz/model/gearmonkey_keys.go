package model

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/codec"
)

// get returns the value of a key. It creates the value if it does not exist.
func (m *gearmonkey) get(key string) *mValue {
	v := m.keys[key]
	if v == nil {
		v = &mValue{}
		m.keys[key] = v
	}
	return v
}

// push adds a value at the left end of a list, and gives values to the clients that wait for the key.
func (m *gearmonkey) push(p *mPeer, key string, value []byte) {
	v := m.get(key)
	v.list = slices.Insert(v.list, 0, value)
	m.raw(p, "gearmonkey.server.lpush", integer(int64(len(v.list))))
	for _, w := range slices.Clone(m.waiting) {
		if slices.Contains(w.waits, key) && len(v.list) > 0 {
			m.forget(w.conn)
			m.pop(w, key, "gearmonkey.server.brpop-first-come")
			m.served(w)
		}
	}
}

// pop removes the value at the right end of a nonempty list and expects a reply with the value.
func (m *gearmonkey) pop(p *mPeer, key, rule string) {
	v := m.keys[key]
	last := v.list[len(v.list)-1]
	if v.list = v.list[:len(v.list)-1]; len(v.list) == 0 {
		delete(m.keys, key)
	}
	m.raw(p, rule, array([]byte(key), last))
}

// wait handles BRPOP.
func (m *gearmonkey) wait(p *mPeer, timeout []byte, keys ...string) {
	for _, k := range keys {
		if v := m.keys[k]; v != nil && len(v.list) > 0 {
			m.pop(p, k, "gearmonkey.server.brpop-key-order")
			return
		}
	}
	p.waits, p.until = keys, 0
	if n := number(timeout); n > 0 {
		p.until = m.now + time.Duration(min(n, 1<<32))*time.Second
	}
	m.waiting = append(m.waiting, p)
}

// add handles INCR and the similar commands that add n to a number.
func (m *gearmonkey) add(p *mPeer, key string, n int64, rule string) {
	v := m.get(key)
	old, err := strconv.ParseInt(string(v.text), 10, 64)
	if overflows := old+n < old != (n < 0); len(v.text) > 0 && err != nil || overflows {
		m.any(p, codec.RuleID(rule))
		return
	}
	v.text = strconv.AppendInt(nil, old+n, 10)
	m.raw(p, rule, integer(old+n))
}

// hset handles HMSET: it sets fields of the hash at key. pairs contains the names and the values of fields in turn.
func (m *gearmonkey) hset(p *mPeer, key string, pairs ...string) {
	v := m.get(key)
	if v.hash == nil {
		v.hash = map[string][]byte{}
	}
	for i := 0; i < len(pairs); i += 2 {
		v.hash[pairs[i]] = []byte(pairs[i+1])
	}
	m.raw(p, "gearmonkey.server.hmset", "+OK\r\n")
}

// publish handles PUBLISH of an event ("create:", "start:" or "finish:") for a job. It expects a message for each
// subscriber of the function's channel, and a reply with their number.
func (m *gearmonkey) publish(p *mPeer, f mWords, event string) {
	channel := "channel:" + string(f.Arg(0))
	n := 0
	for _, q := range m.peers {
		if q.channels[channel] {
			n++
			m.event(q, array([]byte("message"), []byte(channel), append([]byte(event), f.Arg(1)...)))
		}
	}
	m.raw(p, "gearmonkey.server.publish", integer(int64(n)))
}

// far is the longest expiration time that the model represents. For longer times, servers differ.
const far = 1 << 31 * time.Second

// expire handles EXPIRE: the key is removed after a number of seconds, or at once if the number is 0. It expects 1, or
// 0 if the key does not exist.
func (m *gearmonkey) expire(p *mPeer, key string, seconds []byte) {
	if number(seconds) > 1<<50 { // the number of milliseconds may overflow in the server
		m.any(p, "gearmonkey.server.expire")
		return
	}
	v := m.keys[key]
	if v == nil {
		m.raw(p, "gearmonkey.server.expire", integer(0))
		return
	}
	v.until = m.now + min(time.Duration(min(number(seconds), 1<<32))*time.Second, far)
	if number(seconds) == 0 {
		delete(m.keys, key)
	}
	m.raw(p, "gearmonkey.server.expire", integer(1))
}

// ttl handles TTL: it expects the seconds until the key expires, with a tolerance of one second, -1 if the key does not
// expire, and -2 if it does not exist.
func (m *gearmonkey) ttl(p *mPeer, key string) {
	v := m.keys[key]
	switch {
	case v == nil:
		m.raw(p, "gearmonkey.server.ttl", integer(-2))
	case v.until == 0:
		m.raw(p, "gearmonkey.server.ttl", integer(-1))
	default:
		left := int64((v.until - m.now) / time.Second)
		open := v.until-m.now > far-time.Hour
		m.expect(p.conn, "gearmonkey.server.ttl", "TTL", func(f *codec.Frame) error {
			if n, err := strconv.ParseInt(string(bytes.Trim(f.Raw, ":\r\n")), 10, 64); err != nil || n < left-1 ||
				n > left+1 && !open {
				return wrong("expected a time to live of %d s", left)
			}
			return nil
		})
	}
}

// page returns the elements in the range that LRANGE or ZRANGE requests.
func page(all [][]byte, start, stop []byte) [][]byte {
	at := func(b []byte) int {
		n, _ := strconv.Atoi(string(b))
		if n < 0 {
			n += len(all)
		}
		return n
	}
	from, to := max(at(start), 0), min(at(stop), len(all)-1)+1
	if from >= to {
		return nil
	}
	return all[from:to]
}

// ranked returns the members of a sorted set in the order of their scores.
func (v *mValue) ranked() (all [][]byte) {
	names := slices.SortedFunc(maps.Keys(v.scores), func(a, b string) int {
		return cmp.Or(cmp.Compare(v.scores[a], v.scores[b]), strings.Compare(a, b))
	})
	for _, n := range names {
		all = append(all, []byte(n))
	}
	return all
}

// hashOf returns the SHA-1 hash of a script in hexadecimal, as EVALSHA uses it.
func hashOf(script []byte) string {
	sum := sha1.Sum(script)
	return hex.EncodeToString(sum[:])
}
