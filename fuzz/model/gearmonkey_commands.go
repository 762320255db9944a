package model

import (
	"bytes"
	"strconv"
	"strings"

	"jobwire/codec"
)

// The script that takes a scheduled job. The specification prints one text of the script and states the hash of another
// text.
const (
	scriptPrinted = "local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); if (#item > 0) then redis.call('ZREM', KEYS[1], item[1]); return { KEYS[1], item[1] }; end"
	scriptHashed  = "local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); if (#item > 0) then redis.call('ZREM', KEYS[1], item[1]); return { KEYS[1],  item[1] }; end"
)

// mHandlers maps the types of commands in the specification to functions that update the model.
var mHandlers map[string]func(m *gearmonkey, p *mPeer, f mWords)

func jobKey(f mWords) string  { return "job:" + string(f.Arg(0)) + ":" + string(f.Arg(1)) }
func lockKey(f mWords) string { return "lock:" + string(f.Arg(0)) + ":" + string(f.Arg(1)) }

func queueKey(f mWords, priority string) string {
	return "queue:" + string(f.Arg(0)) + ":" + priority
}

// init sets the handler of each command of the specification. Each handler computes the keys that its command uses
// from the function name and the job ID: see jobKey, lockKey and queueKey.
func init() {
	type (
		peer  = mPeer
		frame = mWords
	)
	field := func(rule string, name string) func(m *gearmonkey, p *peer, f frame) {
		return func(m *gearmonkey, p *peer, f frame) {
			var v []byte
			if h := m.keys[jobKey(f)]; h != nil {
				v = h.hash[name]
			}
			m.raw(p, rule, bulk(v))
		}
	}
	mHandlers = map[string]func(m *gearmonkey, p *peer, f frame){
		"GET_COUNT": func(m *gearmonkey, p *peer, f frame) {
			var v []byte
			if c := m.keys["count:"+string(f.Arg(0))]; c != nil {
				v = c.text
			}
			m.raw(p, "gearmonkey.server.get", bulk(v))
		},
		"INCR_UID": func(m *gearmonkey, p *peer, f frame) { m.add(p, "uid:"+string(f.Arg(0)), 1, "gearmonkey.server.incr") },
		"INCR_COUNT": func(m *gearmonkey, p *peer, f frame) {
			m.add(p, "count:"+string(f.Arg(0)), 1, "gearmonkey.server.incr")
		},
		"DECR_COUNT": func(m *gearmonkey, p *peer, f frame) {
			m.add(p, "count:"+string(f.Arg(0)), -1, "gearmonkey.server.decr")
		},
		"SET_COUNT": mSet("count:"),
		"SET_UID":   mSet("uid:"),
		"HMSET_IDLE": func(m *gearmonkey, p *peer, f frame) {
			m.hset(p, jobKey(f), "status", "idle", "input", string(f.Arg(2)))
		},
		"HMSET_BUSY": func(m *gearmonkey, p *peer, f frame) { m.hset(p, jobKey(f), "status", "busy") },
		"HMSET_PROGRESS": func(m *gearmonkey, p *peer, f frame) {
			m.hset(p, jobKey(f), "status:dividend", string(f.Arg(2)), "status:divisor", string(f.Arg(3)))
		},
		"HMSET_DONE": func(m *gearmonkey, p *peer, f frame) {
			m.hset(p, jobKey(f), "status", string(f.Arg(2)), "output", string(f.Arg(3)))
		},
		"HGET_INPUT":     field("gearmonkey.server.hget", "input"),
		"HGET_STATUS":    field("gearmonkey.server.hget", "status"),
		"HMGET_JOB":      mFields,
		"HGETALL_JOB":    mAll,
		"PUBLISH_CREATE": func(m *gearmonkey, p *peer, f frame) { m.publish(p, f, "create:") },
		"PUBLISH_START":  func(m *gearmonkey, p *peer, f frame) { m.publish(p, f, "start:") },
		"PUBLISH_FINISH": func(m *gearmonkey, p *peer, f frame) { m.publish(p, f, "finish:") },
		"ZADD_SCHEDULED": mSchedule,
		"LPUSH_QUEUE":    func(m *gearmonkey, p *peer, f frame) { m.push(p, queueKey(f, string(f.Arg(1))), f.Arg(2)) },
		"LPUSH_LOCK":     func(m *gearmonkey, p *peer, f frame) { m.push(p, lockKey(f), f.Arg(2)) },
		"BRPOP_LOCK":     func(m *gearmonkey, p *peer, f frame) { m.wait(p, f.Arg(2), lockKey(f)) },
		"BRPOP_QUEUES": func(m *gearmonkey, p *peer, f frame) {
			m.wait(p, f.last(), queueKey(f, "high"), queueKey(f, "normal"), queueKey(f, "low"))
		},
		"SCRIPT_LOAD": func(m *gearmonkey, p *peer, f frame) {
			m.scripts[hashOf(f.Arg(0))] = true
			if s := string(f.Arg(0)); s != scriptHashed && s != scriptPrinted { // the text may not be a valid script
				m.any(p, "gearmonkey.server.script-load")
				return
			}
			m.raw(p, "gearmonkey.server.script-load", bulk([]byte(hashOf(f.Arg(0)))))
		},
		"EVALSHA_SCHEDULED": mTake,
		"EXPIRE_JOB":        func(m *gearmonkey, p *peer, f frame) { m.expire(p, jobKey(f), f.Arg(2)) },
		"EXPIRE_LOCK":       func(m *gearmonkey, p *peer, f frame) { m.expire(p, lockKey(f), f.Arg(2)) },
		"TTL_JOB":           func(m *gearmonkey, p *peer, f frame) { m.ttl(p, jobKey(f)) },
		"TTL_LOCK":          func(m *gearmonkey, p *peer, f frame) { m.ttl(p, lockKey(f)) },
		"LRANGE_QUEUE": func(m *gearmonkey, p *peer, f frame) {
			var all [][]byte
			if v := m.keys[queueKey(f, string(f.Arg(1)))]; v != nil {
				all = v.list
			}
			m.raw(p, "gearmonkey.server.lrange", array(page(all, f.Arg(2), f.Arg(3))...))
		},
		"ZRANGE_SCHEDULED": func(m *gearmonkey, p *peer, f frame) {
			var all [][]byte
			if v := m.keys[queueKey(f, "scheduled")]; v != nil {
				all = v.ranked()
			}
			m.raw(p, "gearmonkey.server.zrange", array(page(all, f.Arg(1), f.Arg(2))...))
		},
		"LLEN_LOCK": func(m *gearmonkey, p *peer, f frame) {
			n := 0
			if v := m.keys[lockKey(f)]; v != nil {
				n = len(v.list)
			}
			m.raw(p, "gearmonkey.server.llen", integer(int64(n)))
		},
		"EXISTS_JOB": func(m *gearmonkey, p *peer, f frame) {
			m.raw(p, "gearmonkey.server.exists", integer(m.countKey(jobKey(f))))
		},
		"DEL_JOB": func(m *gearmonkey, p *peer, f frame) {
			m.raw(p, "gearmonkey.server.del", integer(m.countKey(jobKey(f))))
			delete(m.keys, jobKey(f))
		},
		"SUBSCRIBE_CHANNEL":   mSubscribe(true),
		"UNSUBSCRIBE_CHANNEL": mSubscribe(false),
	}
}

// mWords contains the arguments of a request without framing.
type mWords [][]byte

func (w mWords) Arg(i int) []byte { return w[i] }
func (w mWords) last() []byte     { return w[len(w)-1] }

// countKey returns 1 if a key exists and 0 otherwise, as EXISTS and DEL reply.
func (m *gearmonkey) countKey(key string) int64 {
	if m.keys[key] != nil {
		return 1
	}
	return 0
}

// mSet returns the handler of a SET of the counter whose key is prefix and a function name.
func mSet(prefix string) func(*gearmonkey, *mPeer, mWords) {
	return func(m *gearmonkey, p *mPeer, f mWords) {
		m.keys[prefix+string(f.Arg(0))] = &mValue{text: f.Arg(1)}
		m.raw(p, "gearmonkey.server.set", "+OK\r\n")
	}
}

// mFields handles HMGET for a job: it expects the values of the requested fields in the order of the request, and null
// for each field that the job does not have.
func mFields(m *gearmonkey, p *mPeer, f mWords) {
	var all [][]byte
	for _, name := range f[2:] {
		var v []byte
		if h := m.keys[jobKey(f)]; h != nil {
			v = h.hash[string(name)]
		}
		all = append(all, v)
	}
	m.raw(p, "gearmonkey.server.hmget", array(all...))
}

// mAll expects a reply with all fields of a hash, in any order.
func mAll(m *gearmonkey, p *mPeer, f mWords) {
	h := m.keys[jobKey(f)]
	if h == nil {
		m.raw(p, "gearmonkey.server.hgetall-empty", "*0\r\n")
		return
	}
	want := map[string]string{}
	for k, v := range h.hash {
		want[k] = string(v)
	}
	m.expect(p.conn, "gearmonkey.server.hgetall", "the job", typed("JOB", func(r *codec.Frame) error {
		var msg codec.Message
		r.Message(&msg)
		if len(msg.Args) != 2*len(want) {
			return wrong("expected a job with %d fields", len(want))
		}
		for i := 0; i+1 < len(msg.Args); i += 2 {
			if v, ok := want[string(msg.Args[i])]; !ok || v != string(msg.Args[i+1]) {
				return wrong("expected %.40q in field %q", v, msg.Args[i])
			}
		}
		return nil
	}))
}

// mSchedule handles ZADD for a scheduled job: the score is the time at which the job is eligible. It expects the number
// of added members: 0 if the command only changes the time of a job.
func mSchedule(m *gearmonkey, p *mPeer, f mWords) {
	v := m.get(queueKey(f, "scheduled"))
	if v.scores == nil {
		v.scores = map[string]float64{}
	}
	_, known := v.scores[string(f.Arg(2))]
	v.scores[string(f.Arg(2))] = score(f.Arg(1))
	added := int64(1)
	if known {
		added = 0
	}
	m.raw(p, "gearmonkey.server.zadd", integer(added))
}

// score parses the score of a member of a sorted set.
func score(b []byte) float64 {
	n, _ := strconv.ParseFloat(string(b), 64)
	return n
}

// mTake handles a call of the script that takes the earliest scheduled job whose time has come.
func mTake(m *gearmonkey, p *mPeer, f mWords) {
	sha := strings.ToLower(string(f.Arg(0)))
	if !m.scripts[sha] && m.quirks[Shared] { // another client may have loaded the script
		m.any(p, "gearmonkey.server.noscript")
		return
	}
	if !m.scripts[sha] {
		m.expect(p.conn, "gearmonkey.server.noscript", "NOSCRIPT", typed("error", func(r *codec.Frame) error {
			if !bytes.HasPrefix(r.Raw, []byte("-NOSCRIPT")) {
				return wrong("expected error NOSCRIPT, because the script is not loaded")
			}
			return nil
		}))
		return
	}
	if sha != hashOf([]byte(scriptHashed)) && sha != hashOf([]byte(scriptPrinted)) {
		m.unchecked[p.conn] = true
		m.taint()
		return
	}
	key := "queue:" + string(f.Arg(1)) + ":scheduled"
	date := score(f.last())
	v := m.keys[key]
	if v != nil {
		for _, id := range v.ranked() {
			if s := v.scores[string(id)]; s >= 0 && s <= date {
				if delete(v.scores, string(id)); len(v.scores) == 0 {
					delete(m.keys, key)
				}
				m.raw(p, "gearmonkey.server.evalsha-due", array([]byte(key), id))
				return
			}
		}
	}
	m.raw(p, "gearmonkey.server.evalsha-nil", "$-1\r\n")
}

// mSubscribe returns the handler of SUBSCRIBE (on is true) or UNSUBSCRIBE for the channel of a function. It expects a
// confirmation with the number of channels to which the connection is then subscribed.
func mSubscribe(on bool) func(*gearmonkey, *mPeer, mWords) {
	return func(m *gearmonkey, p *mPeer, f mWords) {
		channel, word := "channel:"+string(f.Arg(0)), "unsubscribe"
		if delete(p.channels, channel); on {
			p.channels[channel], word = true, "subscribe"
		}
		m.raw(p, "gearmonkey.resp.pubsub.confirmed",
			"*3\r\n"+bulk([]byte(word))+bulk([]byte(channel))+integer(int64(len(p.channels))))
	}
}
