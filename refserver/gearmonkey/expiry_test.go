package gearmonkey

import (
	"fmt"
	"testing"
	"time"

	"jobwire/refserver"
)

// TestExpiry checks that a key exists until the end of its last millisecond, for every command that sets a time
// to live.
func TestExpiry(t *testing.T) {
	for _, command := range []string{
		"EXPIRE k 10", "PEXPIRE k 10000", "SET k v EX 10", "SET k v PX 10000", "SETEX k 10 v", "PSETEX k 10000 v",
		"GETEX k EX 10", "GETEX k PX 10000",
	} {
		t.Run(command, func(t *testing.T) {
			bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
				c := dial()
				time.Sleep(77 * time.Minute) // long after the start of the server
				c.want("SET k v", "+OK")
				c.ask(command)
				start := time.Now()
				c.want("TTL k", ":10")
				c.want("PTTL k", ":10000")
				c.want("EXPIRETIME k", fmt.Sprintf(":%d", start.Add(10*time.Second).Unix()))
				c.want("PEXPIRETIME k", fmt.Sprintf(":%d", start.Add(10*time.Second).UnixMilli()))
				time.Sleep(3600 * time.Millisecond)
				c.want("TTL k", ":6")
				c.want("PTTL k", ":6400")
				time.Sleep(6400 * time.Millisecond)
				c.want("EXISTS k", ":1")
				c.want("TTL k", ":0")
				time.Sleep(time.Millisecond)
				c.want("EXISTS k", ":0")
				c.want("TTL k", ":-2")
				c.want("DBSIZE", ":0")
			})
		})
	}
}

// TestExpiryAtTimes tests that keys that expire at a given time, in seconds or milliseconds, have the remaining time,
// and that a key whose time has passed is removed at once.
func TestExpiryAtTimes(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		at := time.Now().Add(time.Hour)
		for _, command := range []string{
			fmt.Sprintf("EXPIREAT k %d", at.Unix()), fmt.Sprintf("PEXPIREAT k %d", at.UnixMilli()),
			fmt.Sprintf("SET k v EXAT %d", at.Unix()), fmt.Sprintf("SET k v PXAT %d", at.UnixMilli()),
			fmt.Sprintf("GETEX k EXAT %d", at.Unix()), fmt.Sprintf("GETEX k PXAT %d", at.UnixMilli()),
		} {
			c.want("SET k v", "+OK")
			c.want("TTL k", ":-1")
			c.ask(command)
			c.want("PTTL k", ":3600000")
		}
		c.want(fmt.Sprintf("EXPIREAT k %d", time.Now().Unix()), ":1") // already in the past
		c.want("EXISTS k", ":0")
		c.want("SET k v", "+OK")
		c.want("EXPIRE k -1", ":1")
		c.want("EXISTS k", ":0")
		c.want("SET k v", "+OK")
		c.want("EXPIRE k 0", ":1")
		c.want("EXISTS k", ":0")
	})
}

// TestEffectsOfCommandsOnExpiry checks the effects of commands on the time to live of a key.
func TestEffectsOfCommandsOnExpiry(t *testing.T) {
	for _, tt := range []struct{ do, key, ttl string }{
		{"SET k w", "k", ":-1"},
		{"SET k w KEEPTTL", "k", ":100"},
		{"PERSIST k", "k", ":-1"},
		{"GETEX k PERSIST", "k", ":-1"},
		{"APPEND k w", "k", ":100"},
		{"RENAME k l", "l", ":100"},
		{"COPY k l", "l", ":100"},
		{"EXPIRE k 10", "k", ":10"},
		{"EXPIRE k 1000", "k", ":1000"},
		{"EXPIRE k 10 GT", "k", ":100"},
		{"EXPIRE k 10 LT", "k", ":10"},
		{"EXPIRE k 10 NX", "k", ":100"},
		{"EXPIRE k 10 XX", "k", ":10"},
		{"DEL k", "k", ":-2"},
	} {
		t.Run(tt.do, func(t *testing.T) {
			bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
				c := dial()
				c.want("SET k v EX 100", "+OK")
				c.ask(tt.do)
				c.want("TTL "+tt.key, tt.ttl)
				time.Sleep(100*time.Second + time.Millisecond)
				left := map[string]string{":-1": ":1", ":1000": ":1"}[tt.ttl]
				if left == "" {
					left = ":0"
				}
				c.want("EXISTS "+tt.key, left)
			})
		})
	}
}

// TestExpiryInDatabases checks that keys of other databases are separate, and expire too.
func TestExpiryInDatabases(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		c.want("SET k 0 EX 30", "+OK")
		c.want("SELECT 3", "+OK")
		c.want("SET k 3 EX 10", "+OK")
		c.want("SET m 3 EX 20", "+OK")
		c.want("MOVE m 5", ":1")
		c.want("SWAPDB 0 3", "+OK")
		c.want("GET k", "$1 0")
		time.Sleep(11 * time.Second)
		c.want("GET k", "$1 0")
		c.want("SELECT 0", "+OK")
		c.want("GET k", "$-1")
		c.want("SELECT 5", "+OK")
		c.want("GET m", "$1 3")
		time.Sleep(10 * time.Second)
		c.want("GET m", "$-1")
		c.want("SELECT 3", "+OK")
		c.want("GET k", "$1 0")
		time.Sleep(10 * time.Second)
		c.want("GET k", "$-1")
	})
}

// TestExpiryInScripts checks that scripts read and set times to live like commands.
func TestExpiryInScripts(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		time.Sleep(time.Hour)
		c.send("EVAL", "redis.call('SET', KEYS[1], 'v', 'EX', 20); redis.call('EXPIRE', KEYS[1], 10); return redis.call('TTL', KEYS[1])", "1", "k")
		c.gets(":10")
		time.Sleep(10*time.Second + time.Millisecond)
		c.want("GET k", "$-1")
	})
}

// TestForgottenExpiries checks that the deadlines of deleted keys do not accumulate.
func TestForgottenExpiries(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		c := dial()
		for i := range 3 * leastLimit {
			k := fmt.Sprint("k", i)
			c.ask("HSET " + k + " f v")
			c.ask("EXPIRE " + k + " 90000")
			c.ask("EXPIRE " + k + " 80000")
			c.ask("DEL " + k)
		}
		if n := len(m.expiries.of); n > leastLimit+1 || len(m.expiries.heap.items) != n+1 {
			t.Errorf("%d deadlines are kept, %d in the heap", n, len(m.expiries.heap.items)-1)
		}
		if n := len(m.fields.of); n > leastLimit+1 {
			t.Errorf("the fields of %d hashes are kept", n)
		}
	})
}
