package gearmonkey

import (
	"fmt"
	"testing"

	"jobwire/refserver"
)

// TestPublish checks that every subscriber gets published messages in order, before the publisher gets its
// reply.
func TestPublish(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		a, b, both, c := dial(), dial(), dial(), dial()
		a.want("SUBSCRIBE channel:f", "*3 $9 subscribe $9 channel:f :1")
		b.want("PSUBSCRIBE channel:*", "*3 $10 psubscribe $9 channel:* :1")
		both.want("HELLO 3 SETNAME x", both.helloReply())
		both.want("SUBSCRIBE channel:f", ">3 $9 subscribe $9 channel:f :1")
		both.want("PSUBSCRIBE chan*f", ">3 $10 psubscribe $6 chan*f :2")
		for i := range 20 {
			event := fmt.Sprintf("create:%d", 10+i)
			c.want("PUBLISH channel:f "+event, ":4")
			a.gets("*3 $7 message $9 channel:f $9 " + event)
			b.gets("*4 $8 pmessage $9 channel:* $9 channel:f $9 " + event)
			both.gets(">3 $7 message $9 channel:f $9 " + event)
			both.gets(">4 $8 pmessage $6 chan*f $9 channel:f $9 " + event)
		}
		c.want("PUBLISH channel:g x", ":1")
		b.gets("*4 $8 pmessage $9 channel:* $9 channel:g $1 x")
		a.quiet()
		both.quiet()

		both.want("PUBLISH channel:f own", ">3 $7 message $9 channel:f $3 own")
		both.gets(">4 $8 pmessage $6 chan*f $9 channel:f $3 own")
		both.gets(":4")
		both.want("GET x", "_")
	})
}

// helloReply is the reply to HELLO 3.
func (c *client) helloReply() string {
	return fmt.Sprintf("%%7 $6 server $5 redis $7 version $6 7.0.15 $5 proto :3 $2 id :%d $4 mode $10 standalone $4 role $6 master $7 modules *0", 3)
}

// TestPublishFromScript checks that messages from scripts and transactions are delivered, too.
func TestPublishFromScript(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		s, c := dial(), dial()
		s.want("SUBSCRIBE ch", "*3 $9 subscribe $2 ch :1")
		c.send("EVAL", "return redis.call('PUBLISH', 'ch', 'a') + redis.call('PUBLISH', 'other', 'b')", "0")
		c.gets(":1")
		s.gets("*3 $7 message $2 ch $1 a")
		c.raw("MULTI\r\nPUBLISH ch b\r\nEXEC\r\n")
		for _, want := range []string{"+OK", "+QUEUED", "*1 :1"} {
			c.gets(want)
		}
		s.gets("*3 $7 message $2 ch $1 b")
	})
}

// TestEndOfSubscriptions checks that a client that has disconnected or unsubscribed gets nothing and is not
// counted.
func TestEndOfSubscriptions(t *testing.T) {
	bubble(t, refserver.Options{}, func(t *testing.T, m *Machine, dial func() *client) {
		a, b, c := dial(), dial(), dial()
		a.want("SUBSCRIBE x", "*3 $9 subscribe $1 x :1")
		b.want("SUBSCRIBE x", "*3 $9 subscribe $1 x :1")
		b.want("PSUBSCRIBE *", "*3 $10 psubscribe $1 * :2")
		c.want("PUBSUB NUMSUB x y", "*4 $1 x :2 $1 y :0")
		c.want("PUBSUB NUMPAT", ":1")
		a.leave()
		c.want("PUBLISH x 1", ":2")
		b.gets("*3 $7 message $1 x $1 1")
		b.gets("*4 $8 pmessage $1 * $1 x $1 1")
		b.want("RESET", "+RESET")
		c.want("PUBLISH x 2", ":0")
		c.want("PUBSUB CHANNELS", "*0")
		b.want("GET k", "$-1")
	})
}

// TestMatch tests that channel patterns with *, ?, sets and escapes match the same channels as in Redis.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "", false}, {"*", "", true}, {"*", "a/b.c", true}, {"a*c", "abbc", true},
		{"a*c", "abcd", false}, {"*a*b*", "xaxxbx", true}, {"*a*b*", "xbxxax", false}, {"h?llo", "hello", true},
		{"h?llo", "hllo", false}, {"h[ae]llo", "hallo", true}, {"h[ae]llo", "hillo", false}, {"h[^e]llo", "hallo", true},
		{"h[^e]llo", "hello", false}, {"h[a-b]llo", "hbllo", true}, {"h[b-a]llo", "hallo", true}, {"h[a-b]llo", "hcllo", false},
		{`h\*llo`, "h*llo", true}, {`h\*llo`, "hello", false}, {`[\]]`, "]", true}, {`[a`, "a", true}, {`a\`, `a\`, true},
		{"a**", "a", true}, {"a?", "a", false},
	} {
		if got := match(tt.pattern, tt.s); got != tt.want {
			t.Errorf("match(%q, %q) is %v", tt.pattern, tt.s, got)
		}
	}
}
