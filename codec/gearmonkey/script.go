package gearmonkey

// Script removes the first job whose time has come from the queue of scheduled jobs, as printed in the
// specification ("Worker commands").
const Script = `local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); ` +
	`if (#item > 0) then redis.call('ZREM', KEYS[1], item[1]); return { KEYS[1], item[1] }; end`

// hashedScript is the script whose SHA1 the specification prints. It does the same as Script, but has two
// spaces before the last item[1].
const hashedScript = `local item = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ARGV[1], 'LIMIT', 0, 1); ` +
	`if (#item > 0) then redis.call('ZREM', KEYS[1], item[1]); return { KEYS[1],  item[1] }; end`

// printedSHA1 is the SHA1 in the specification: that of [hashedScript], not of [Script]. A worker must not
// rely on either of them: it runs the script by the SHA1 that SCRIPT LOAD returned (rule
// gearmonkey.loop.script-sha1).
const printedSHA1 = "5231827cd49b540660ef44969b38cc858f157824"
