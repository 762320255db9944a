package gearmonkey

import (
	"strings"
	"testing"

	"jobwire/internal/peers"
)

// The document's script, with the second blank that its hash is of.
const (
	script = "local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); if (#item > 0) then " +
		"redis.call('ZREM', KEYS[1], item[1]); return { KEYS[1],  item[1] }; end"
	scriptSHA1 = "5231827cd49b540660ef44969b38cc858f157824"
)

// conversations are commands, written as one would inline, and their replies. A
// reply that ends in ... only begins like that. All of them hold of Redis 7, too.
var conversations = map[string][][2]string{
	"the document's client": {
		{"GET count:f", "$-1"},
		{"INCR uid:f", ":1"},
		{`HMSET job:f:1 status "idle" input "two words"`, "+OK"},
		{`PUBLISH channel:f "create:1"`, ":0"},
		{"LPUSH queue:f:normal 1", ":1"},
		{"HGETALL job:f:1", "*4 $6 status $4 idle $5 input $9 two words"},
		{"BRPOP queue:f:high queue:f:normal queue:f:low 1", "*2 $14 queue:f:normal $1 1"},
		{`HMSET job:f:1 status "busy"`, "+OK"},
		{`HMSET job:f:1 status:dividend "1" status:divisor "2"`, "+OK"},
		{`HMSET job:f:1 status "success" output "a"`, "+OK"},
		{"EXPIRE job:f:1 90000", ":1"},
		{"TTL job:f:1", ":90000"},
		{`LPUSH lock:f:1 "OK"`, ":1"},
		{"EXPIRE lock:f:1 10", ":1"},
		{"BRPOP lock:f:1 0", "*2 $8 lock:f:1 $2 OK"},
		{"TTL lock:f:1", ":-2"},
		{"HGETALL job:f:1", "*10 $6 status $7 success $5 input $9 two words $15 status:dividend $1 1 $14 status:divisor $1 2 $6 output $1 a"},
		{"DECR count:f", ":-1"},
	},
	"the document's script": {
		{`SCRIPT LOAD "` + script + `"`, "$40 " + scriptSHA1},
		{"EVALSHA " + scriptSHA1 + " 1 queue:f:scheduled 100", "$-1"},
		{"ZADD queue:f:scheduled 100 7", ":1"},
		{"ZADD queue:f:scheduled 99 8", ":1"},
		{"EVALSHA " + scriptSHA1 + " 1 queue:f:scheduled 98", "$-1"},
		{"EVALSHA " + strings.ToUpper(scriptSHA1) + " 1 queue:f:scheduled 100", "*2 $17 queue:f:scheduled $1 8"},
		{"EVALSHA " + scriptSHA1 + " 1 queue:f:scheduled 100", "*2 $17 queue:f:scheduled $1 7"},
		{"EVALSHA " + scriptSHA1 + " 1 queue:f:scheduled 100", "$-1"},
		{"SET queue:f:scheduled x", "+OK"},
		{"EVALSHA " + scriptSHA1 + " 1 queue:f:scheduled 100", "-WRONGTYPE ..."},
		{"SCRIPT FLUSH", "+OK"},
		{"EVALSHA " + scriptSHA1 + " 1 queue:f:scheduled 100", "-NOSCRIPT No matching script. Please use EVAL."},
	},
	"names and arguments": {
		{"ping", "+PONG"},
		{"PiNg hi", "$2 hi"},
		{"get", "-ERR wrong number of arguments for 'get' command"},
		{"GET a b", "-ERR wrong number of arguments for 'get' command"},
		{`foo a "b c"`, "-ERR unknown command 'foo', with args beginning with: 'a' 'b c' "},
		{"HMSET h a", "-ERR wrong number of arguments for 'hmset' command"},
		{"HMSET h a 1 b", "-ERR wrong number of arguments for 'hmset' command"},
		{"script foo", "-ERR unknown subcommand 'foo'. Try SCRIPT HELP."},
		{"script load", "-ERR wrong number of arguments for 'script|load' command"},
		{"SCRIPT EXISTS", "-ERR wrong number of arguments for 'script|exists' command"},
		{"TIME x", "-ERR wrong number of arguments for 'time' command"},
		{"BRPOP a", "-ERR wrong number of arguments for 'brpop' command"},
		{"PUBLISH a", "-ERR wrong number of arguments for 'publish' command"},
		{`""`, "-ERR unknown command '', with args beginning with: "},
		{`SET "a\x41\n" 'b\'c'`, "+OK"},
		{`GET "aA\n"`, "$3 b'c"},
		{"GET aA", "$-1"},
	},
	"wrong types and values": {
		{"SET s abc", "+OK"},
		{"LPUSH s x", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"BRPOP a s 0", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"HMSET s a 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"HGETALL s", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZADD s 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"INCR s", "-ERR value is not an integer or out of range"},
		{"LPUSH l x", ":1"},
		{"INCR l", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"GET l", "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"ZADD z x y", "-ERR value is not a valid float"},
		{"ZADD z 1 a 2", "-ERR syntax error"},
		{"LRANGE l a b", "-ERR value is not an integer or out of range"},
		{"SETRANGE s 536870912 x", "-ERR string exceeds maximum allowed size (proto-max-bulk-len)"},
		{"SETBIT s 4294967296 1", "-ERR bit offset is not an integer or out of range"},
		{"SELECT 16", "-ERR DB index is out of range"},
		{"MOVE s 16", "-ERR DB index is out of range"},
		{"COPY s t DB 16", "-ERR DB index is out of range"},
		{"SWAPDB 0 16", "-ERR DB index is out of range"},
		{"SELECT x", "-ERR value is not an integer or out of range"},
		{"EXPIRE l x", "-ERR value is not an integer or out of range"},
		{"EXPIRE l 9223372036854775807", "-ERR invalid expire time in 'expire' command"},
		{"EXPIRE l 1 NX XX", "-ERR NX and XX, GT or LT options at the same time are not compatible"},
		{"EXPIRE l 1 FOO", "-ERR Unsupported option FOO"},
		{"SET k v EX 0", "-ERR invalid expire time in 'set' command"},
		{"SET k v EX x", "-ERR value is not an integer or out of range"},
		{"SET k v EX 10 KEEPTTL", "-ERR syntax error"},
		{"SET k v EX", "-ERR syntax error"},
		{"SETEX k 0 v", "-ERR invalid expire time in 'setex' command"},
		{"RENAME nokey b", "-ERR no such key"},
	},
	"timeouts": {
		{"BRPOP a -1", "-ERR timeout is negative"},
		{"BRPOP a x", "-ERR timeout is not a float or out of range"},
		{"BRPOP a inf", "-ERR timeout is negative"},
		{"BRPOP a nan", "-ERR timeout is not a float or out of range"},
		{`BRPOP a ""`, "-ERR timeout is not a float or out of range"},
		{"XREAD BLOCK x STREAMS a 0", "-ERR timeout is not an integer or out of range"},
		{"XREAD BLOCK -1 STREAMS a 0", "-ERR timeout is negative"},
		{"BLMPOP 1 0 a LEFT", "-ERR numkeys should be greater than 0"},
		{"BLMPOP 1 1 a FOO", "-ERR syntax error"},
		{"BRPOP a 0.01", "*-1"},
		{"BRPOPLPUSH a b 0.01", "*-1"},
		{"RPUSH a 1 2 3", ":3"},
		{"BRPOP a 0", "*2 $1 a $1 3"},
		{"BLPOP none a 0", "*2 $1 a $1 1"},
		{"BRPOPLPUSH a b 0", "$1 2"},
		{"BLMOVE b a LEFT RIGHT 0", "$1 2"},
		{"ZADD z 1 m 2 n", ":2"},
		{"BZPOPMIN z 0", "*3 $1 z $1 m $1 1"},
		{"HELLO 3", "%7 $6 server $5 redis ..."},
		{"BZPOPMAX z 0", "*3 $1 z $1 n ,2"},
		{"BRPOP none 0.01", "_"},
	},
	"transactions": {
		{"MULTI", "+OK"},
		{"MULTI", "-ERR MULTI calls can not be nested"},
		{"WATCH x", "-ERR WATCH inside MULTI is not allowed"},
		{"SET q 1", "+QUEUED"},
		{"LPUSH q 1", "+QUEUED"},
		{"EXPIRE q x", "+QUEUED"},
		{"BRPOP none 0", "+QUEUED"},
		{"BRPOPLPUSH none q2 0", "+QUEUED"},
		{"BLMOVE none b LEFT RIGHT 0", "+QUEUED"},
		{"BZPOPMIN none 0", "+QUEUED"},
		{"GET q", "+QUEUED"},
		{"EXEC", "*8 +OK -WRONGTYPE Operation against a key holding the wrong kind of value " +
			"-ERR value is not an integer or out of range *-1 $-1 $-1 *-1 $1 1"},
		{"EXEC", "-ERR EXEC without MULTI"},
		{"DISCARD", "-ERR DISCARD without MULTI"},
		{"MULTI", "+OK"},
		{"foo", "-ERR unknown command 'foo', with args beginning with: "},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"MULTI", "+OK"},
		{"EXEC a", "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"},
		{"EXEC", "-ERR EXEC without MULTI"},
		{"MULTI", "+OK"},
		{"SELECT 3", "+QUEUED"},
		{"SET q 3", "+QUEUED"},
		{"SELECT 99", "+QUEUED"},
		{"EXEC", "*3 +OK +OK -ERR DB index is out of range"},
		{"GET q", "$1 3"},
		{"DEL q", ":1"},
		{"SELECT 0", "+OK"},
		{"WATCH q", "+OK"},
		{"SET q 2", "+OK"},
		{"MULTI", "+OK"},
		{"SET q 3", "+QUEUED"},
		{"EXEC", "*-1"},
		{"GET q", "$1 2"},
		{"MULTI", "+OK"},
		{"SET q 3", "+QUEUED"},
		{"DISCARD", "+OK"},
		{"GET q", "$1 2"},
	},
	"subscriptions": {
		{"SUBSCRIBE a", "*3 $9 subscribe $1 a :1"},
		{"SUBSCRIBE a", "*3 $9 subscribe $1 a :1"},
		{"PSUBSCRIBE a*", "*3 $10 psubscribe $2 a* :2"},
		{"GET x", "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"},
		{"get", "-ERR wrong number of arguments for 'get' command"},
		{"foo", "-ERR unknown command 'foo', with args beginning with: "},
		{"PING", "*2 $4 pong $0 "},
		{"PING hi", "*2 $4 pong $2 hi"},
		{"UNSUBSCRIBE q", "*3 $11 unsubscribe $1 q :2"},
		{"UNSUBSCRIBE", "*3 $11 unsubscribe $1 a :1"},
		{"UNSUBSCRIBE", "*3 $11 unsubscribe $-1 :1"},
		{"PUNSUBSCRIBE", "*3 $12 punsubscribe $2 a* :0"},
		{"PING", "+PONG"},
		{"PUBSUB FOO", "-ERR unknown subcommand 'FOO'. Try PUBSUB HELP."},
		{"PUBSUB CHANNELS a b", "-ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP."},
		{"MULTI", "+OK"},
		{"SUBSCRIBE a", "+QUEUED"},
		{"EXEC", "*1 *3 $9 subscribe $1 a :1"},
		{"GET x", "-ERR Can't execute 'get': ..."},
		{"RESET", "+RESET"},
		{"GET x", "$-1"},
	},
	"scripts": {
		{"SET q 1", "+OK"},
		{`EVAL "return redis.call('lpush',KEYS[1],1)" 1 q`, "-WRONGTYPE Operation against a key holding the wrong kind of value script: " +
			"1d46b31d0f1004fa6d1ae8c21bd9f91abb4b69bd, on @user_script:1."},
		{`EVAL "return redis.pcall('lpush',KEYS[1],1)" 1 q`, "-WRONGTYPE Operation against a key holding the wrong kind of value"},
		{`EVAL "return foo" 0`, "-ERR user_script:1: Script attempted to access nonexistent global variable 'foo' script: " +
			"47e30a5d10d5694f99208f9adc4fe3bf2450edbd, on @user_script:1."},
		{`EVAL "error('boo')" 0`, "-ERR user_script:1: boo script: 4c4072b2b44689260a81bb26a459f4463cfbb09e, on @user_script:1."},
		{`EVAL "return redis.call('brpop','nn',0)" 0`, "-ERR This Redis command is not allowed from script script: " +
			"a1af525ccba6eec09fc9ec58a52f29e19926a7eb, on @user_script:1."},
		{`EVAL "return redis.call('subscribe','nn')" 0`, "-ERR This Redis command is not allowed from script script: ..."},
		{`EVAL "return redis.call('blmpop',0,1,'nn','LEFT')" 0`, "$-1"},
		{`EVAL "return redis.call('foo')" 0`, "-ERR Unknown Redis command called from script script: cc78c5a793d041f28ab0f6b117a82d1428ccfd13, on @user_script:1."},
		{`EVAL "return redis.call('get')" 0`, "-ERR Wrong number of args calling Redis command from script script: f187dee77f607f7cff00bbabc9df38507582c78d, on @user_script:1."},
		{`EVAL "return redis.call('get', {})" 0`, "-ERR Lua redis lib command arguments must be strings or integers script: 4368e88f98d93af9caf358186e5fbf273374ee91, on @user_script:1."},
		{`EVAL "return redis.error_reply('MY err')" 0`, "-MY err"},
		{`EVAL "retur 1" 0`, "-ERR Error compiling script (new function): ..."},
		{`EVAL "return 1" -1`, "-ERR Number of keys can't be negative"},
		{`EVAL "return 1" 2 a`, "-ERR Number of keys can't be greater than number of args"},
		{`EVAL "return 1" x`, "-ERR value is not an integer or out of range"},
		{`EVALSHA abc 0`, "-NOSCRIPT No matching script. Please use EVAL."},
		{`EVAL "return {1,nil,3}" 0`, "*1 :1"},
		{`EVAL "return {1,'a',{2,false}}" 0`, "*3 :1 $1 a *2 :2 $-1"},
		{`EVAL "return 3.9" 0`, ":3"},
		{`EVAL "return true" 0`, ":1"},
		{`EVAL "return false" 0`, "$-1"},
		{`EVAL "return redis.call('get','nokey')" 0`, "$-1"},
		{`EVAL "return tostring(redis.call('get','nokey'))" 0`, "$5 false"},
		{`EVAL "return redis.call('hgetall','nokey')" 0`, "*0"},
		{`EVAL "return redis.call('set',KEYS[1],ARGV[1])" 1 k v`, "+OK"},
		{"GET k", "$1 v"},
		{`EVAL "redis.call('select',1); redis.call('set','k','one'); return redis.call('get','k')" 0`, "$3 one"},
		{"GET k", "$1 v"},
		{"SELECT 1", "+OK"},
		{"GET k", "$3 one"},
		{"SELECT 0", "+OK"},
		{"SCRIPT EXISTS E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 00", "*2 :0 :0"},
		{`SCRIPT LOAD "return 1"`, "$40 e0e1f9fabfc9d4800c877a703b823ac0578ff8db"},
		{"SCRIPT EXISTS E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 00", "*2 :1 :0"},
		{"EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0", ":1"},
		{"SCRIPT FLUSH foo", "-ERR SCRIPT FLUSH only support SYNC|ASYNC option"},
		{"SCRIPT FLUSH", "+OK"},
		{"SCRIPT KILL", "-NOTBUSY No scripts in execution right now."},
	},
	"connections": {
		{"HELLO", "*14 $6 server $5 redis $7 version $6 7.0.15 $5 proto :2 $2 id ..."},
		{"HELLO 4", "-NOPROTO unsupported protocol version"},
		{"HELLO x", "-ERR Protocol version is not an integer or out of range"},
		{"HELLO 2 FOO", "-ERR Syntax error in HELLO option 'FOO'"},
		{"HELLO 2 AUTH a b", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH x", "-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"},
		{"AUTH a b", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH default b", "+OK"},
		{"HELLO 3 AUTH default x SETNAME foo", "%7 $6 server $5 redis $7 version $6 7.0.15 $5 proto :3 $2 id ..."},
		{"CLIENT GETNAME", "$3 foo"},
		{"GET nokey", "_"},
		{"HGETALL nokey", "%0"},
		{"HSET h b 1 a 2", ":2"},
		{"HGETALL h", "%2 $1 b $1 1 $1 a $1 2"},
		{"RESET", "+RESET"},
		{"CLIENT GETNAME", "$-1"},
		{`CLIENT SETNAME "a b"`, "-ERR Client names cannot contain spaces, newlines or special characters."},
		{"CLIENT FOO", "-ERR unknown subcommand 'FOO'. Try CLIENT HELP."},
		{"CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command"},
		{"SHUTDOWN FOO", "-ERR syntax error"},
		{"INFO foo", "$0 "},
		{"COMMAND FOO", "-ERR unknown subcommand 'FOO'. Try COMMAND HELP."},
		{"TYPE nokey", "+none"},
	},
	"the order of fields": {
		{"HMSET h c 1 a 2 b 3", "+OK"},
		{"HSET h a 4 d 5", ":1"},
		{"HINCRBY h aa 1", ":1"},
		{"HSETNX h 0 x", ":1"},
		{"HKEYS h", "*6 $1 c $1 a $1 b $1 d $2 aa $1 0"},
		{"HVALS h", "*6 $1 1 $1 4 $1 3 $1 5 $1 1 $1 x"},
		{"HDEL h a d", ":2"},
		{"HSET h a 6", ":1"},
		{"HGETALL h", "*10 $1 c $1 1 $1 b $1 3 $2 aa $1 1 $1 0 $1 x $1 a $1 6"},
		{"DEL h", ":1"},
		{"HSET h b 1 a 2", ":2"},
		{"HKEYS h", "*2 $1 b $1 a"},
	},
}

// TestConversations holds them of this server, and of Redis.
func TestConversations(t *testing.T) {
	for _, server := range []struct {
		name string
		addr func(t *testing.T) string
	}{
		{"ours", func(t *testing.T) string { return serveTCP(t) }},
		{"redis-server", func(t *testing.T) string { return peers.Start(t, "redis-server").Addr() }},
	} {
		t.Run(server.name, func(t *testing.T) {
			addr := server.addr(t)
			for name, steps := range conversations {
				t.Run(name, func(t *testing.T) {
					c := dialTCP(t, addr)
					c.want("FLUSHALL", "+OK")
					c.want("SCRIPT FLUSH", "+OK")
					for _, step := range steps {
						c.send(inlineWords(nil, step[0])...)
						got := c.next()
						want, begins := strings.CutSuffix(step[1], "...")
						if got != want && !(begins && strings.HasPrefix(got, want)) {
							t.Errorf("%s: got %q, want %q", step[0], got, step[1])
						}
					}
				})
			}
		})
	}
}
