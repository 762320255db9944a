package gearmonkey

import (
	"crypto/sha1"
	"encoding/hex"
)

// Script takes the first due job off the queue of scheduled ones, as the
// document prints it ("Worker commands").
const Script = `local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); ` +
	`if (#item > 0) then redis.call('ZREM', KEYS[1], item[1]); return { KEYS[1], item[1] }; end`

// HashedScript is the text whose SHA1 the document prints: it has two spaces
// before the last item[1]. It does the same.
const HashedScript = `local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); ` +
	`if (#item > 0) then redis.call('ZREM', KEYS[1], item[1]); return { KEYS[1],  item[1] }; end`

// PrintedSHA1 is what the document runs: the SHA1 of [HashedScript], and not of
// [Script]. Neither is to be relied on: a worker runs what SCRIPT LOAD answered
// (rule gearmonkey.loop.script-sha1).
const PrintedSHA1 = "5231827cd49b540660ef44969b38cc858f157824"

// ScriptSHA1 returns what Redis calls a script once it is loaded: the 40 hex
// digits of its SHA1.
func ScriptSHA1(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}
