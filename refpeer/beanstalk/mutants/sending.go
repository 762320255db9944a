package mutants

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// numbers are faults in the numbers that a client sends.
var numbers = []fault{
	{Name: "priority-negative", About: "The client sends the priority -1 in put.", Rule: "beanstalk.number.priority", Edit: word("put", 1, is("-1"))},
	{Name: "priority-of-33-bits", About: "The client sends a priority of 2^32 in put.", Rule: "beanstalk.number.priority", Edit: word("put", 1, is("4294967296"))},
	{Name: "priority-as-a-fraction", About: "The client sends the priority 0.5 in release.", Rule: "beanstalk.number.priority", Edit: word("release", 2, is("0.5"))},
	{Name: "priority-as-a-word", About: "The client sends the priority \"low\" in bury.", Rule: "beanstalk.number.priority", Edit: word("bury", 2, is("low"))},
	{Name: "delay-in-milliseconds", About: "The client sends the delay of put in milliseconds.", Rule: "beanstalk.number.seconds", Edit: word("put", 2, times(1000))},
	{Name: "ttr-in-milliseconds", About: "The client sends the time to run in milliseconds.", Rule: "beanstalk.number.seconds", Edit: word("put", 3, times(1000))},
	{Name: "ttr-with-a-unit", About: "The client sends the time to run with the unit s.", Rule: "beanstalk.number.seconds", Edit: word("put", 3, func(s string) string { return s + "s" })},
	{Name: "delay-negative", About: "The client sends the delay -1 in release.", Rule: "beanstalk.number.seconds", Edit: word("release", 3, is("-1"))},
	{Name: "delay-as-a-fraction", About: "The client sends the delay of put with a decimal point.", Rule: "beanstalk.number.seconds", Edit: word("put", 2, func(s string) string { return s + ".0" })},
	{Name: "timeout-as-a-fraction", About: "The client sends the timeout of reserve-with-timeout with a decimal point.", Rule: "beanstalk.number.timeout",
		Edit: word("reserve-with-timeout", 1, func(s string) string { return s + ".0" })},
	{Name: "timeout-with-a-sign", About: "The client sends the timeout of reserve-with-timeout with a plus sign.", Rule: "beanstalk.number.timeout",
		Edit: word("reserve-with-timeout", 1, func(s string) string { return "+" + s })},
	{Name: "id-in-hexadecimal", About: "The client sends the job ID of delete in hexadecimal.", Rule: "beanstalk.number.decimal", Edit: word("delete", 1, func(s string) string { return "0x" + s })},
	{Name: "id-with-a-sign", About: "The client sends the job ID of touch with a plus sign.", Rule: "beanstalk.number.decimal", Edit: word("touch", 1, func(s string) string { return "+" + s })},
	{Name: "id-negative", About: "The client sends peek for the job -1.", Rule: "beanstalk.number.decimal", Edit: word("peek", 1, is("-1"))},
	{Name: "bound-negative", About: "The client sends kick with the bound -1 to kick all jobs.", Rule: "beanstalk.number.decimal", Edit: word("kick", 1, is("-1"))},
	{Name: "ids-as-floating-point", About: "The client stores job IDs as floating-point numbers.", Rule: "beanstalk.number.decimal", Condition: "huge-ids", Edit: ids(asFloat)},
	{Name: "size-negative", About: "The client sends put with the size -1 and no body.", Rule: "beanstalk.body.bytes",
		Edit: wholeLine("put", func(l string) string { return l[:strings.LastIndexByte(l, ' ')] + " -1" + crlf })},
	{Name: "size-as-a-fraction", About: "The client sends put with the size 0.0 and no body.", Rule: "beanstalk.body.bytes",
		Edit: wholeLine("put", func(l string) string { return l[:strings.LastIndexByte(l, ' ')] + " 0.0" + crlf })},
	{Name: "size-too-small", About: "The client sends a size in put that is smaller than the body by 1.", Rule: "beanstalk.put.body-crlf", Edit: size(-1)},
	{Name: "size-in-characters", About: "The client converts a body to UTF-8 after it has counted its size.", Rule: "beanstalk.put.body-crlf", Condition: "nul-bytes",
		Edit: edit.Raw("put", func(b []byte) []byte {
			line, body, _ := bytes.Cut(b, []byte(crlf))
			out := append(bytes.Clone(line), crlf...)
			for _, c := range body {
				out = append(out, string(rune(c))...)
			}
			return out
		})},
	{Name: "characters-counted", About: "The client counts the characters of a body instead of its bytes.", Rule: "beanstalk.put.body-crlf", Condition: "multibyte",
		Edit: edit.Raw("put", func(b []byte) []byte {
			line, body, _ := bytes.Cut(b, []byte(crlf))
			n := utf8.RuneCount(body) - len(crlf)
			return fmt.Appendf(nil, "%s %d%s%s", line[:bytes.LastIndexByte(line, ' ')], n, crlf, body)
		})},
}

// lines are faults in the form of lines and in names.
var lines = []fault{
	{Name: "put-line-ends-with-lf", About: "The client ends the line of put with LF alone.", Rule: "beanstalk.line.crlf", Edit: edit.Raw("put", func(b []byte) []byte { return bytes.Replace(b, []byte(crlf), []byte("\n"), 1) })},
	{Name: "two-carriage-returns", About: "The client sends CR CR LF at the end of watch.", Rule: "beanstalk.line.crlf", Edit: ends("watch", "\r\r\n")},
	{Name: "line-too-long", About: "The client pads the priority of release to 250 digits.", Rule: "beanstalk.line.length", Edit: word("release", 2, func(s string) string { return strings.Repeat("0", 250) + s })},
	{Name: "command-in-capitals", About: "The client sends stats-job in capital letters.", Rule: "beanstalk.command.known", Edit: word("stats-job", 0, strings.ToUpper)},
	{Name: "command-unknown", About: "The client sends peek-job instead of peek.", Rule: "beanstalk.command.known", Edit: word("peek", 0, is("peek-job"))},
	{Name: "sends-a-reply", About: "The client sends RELEASED, the reply to release, instead of the request.", Rule: "beanstalk.command.known", Edit: wholeLine("release", func(string) string { return "RELEASED" + crlf })},
	{Name: "empty-line-after-touch", About: "The client sends an additional CR LF after touch.", Rule: "beanstalk.command.known", Edit: edit.Raw("touch", func(b []byte) []byte { return append(b, crlf...) })},
	{Name: "release-without-delay", About: "The client sends release without a delay.", Rule: "beanstalk.command.arguments", Edit: wholeLine("release", func(l string) string { return l[:strings.LastIndexByte(l, ' ')] + crlf })},
	{Name: "bury-without-priority", About: "The client sends bury without a priority.", Rule: "beanstalk.command.arguments", Edit: wholeLine("bury", func(l string) string { return l[:strings.LastIndexByte(l, ' ')] + crlf })},
	{Name: "kick-without-bound", About: "The client sends kick without a bound.", Rule: "beanstalk.command.arguments", Edit: wholeLine("kick", func(string) string { return "kick" + crlf })},
	{Name: "touch-with-a-time", About: "The client sends touch with a number of seconds.", Rule: "beanstalk.command.arguments", Edit: wholeLine("touch", func(l string) string { return l + " 60" + crlf })},
	{Name: "reserve-with-a-tube", About: "The client sends reserve with a tube as an argument.", Rule: "beanstalk.command.arguments", Edit: wholeLine("reserve", func(l string) string { return l + " t2" + crlf })},
	{Name: "tube-with-a-space", About: "The client sends use with a space in the name of the tube.", Rule: "beanstalk.command.arguments", Edit: word("use", 1, is("my tube"))},
	{Name: "two-spaces", About: "The client sends two spaces between the words of delete.", Rule: "beanstalk.command.spacing", Edit: word("delete", 1, func(s string) string { return " " + s })},
	{Name: "space-at-the-end", About: "The client sends a space at the end of reserve-with-timeout.", Rule: "beanstalk.command.spacing", Edit: word("reserve-with-timeout", 1, func(s string) string { return s + " " })},
	{Name: "tube-not-ascii", About: "The client uses a tube with a non-ASCII letter in its name.", Rule: "beanstalk.name.characters", Edit: word("use", 1, is("t\u00fcbe"))},
	{Name: "tube-begins-with-a-hyphen", About: "The client watches a tube whose name begins with a hyphen.", Rule: "beanstalk.name.characters", Edit: word("watch", 1, func(s string) string { return "-" + s[1:] })},
	{Name: "tube-with-a-colon", About: "The client sends ignore with a colon in the name of the tube.", Rule: "beanstalk.name.characters", Edit: word("ignore", 1, func(s string) string { return "queue:" + s })},
	{Name: "tube-without-a-name", About: "The client sends use with an empty name.", Rule: "beanstalk.name.not-empty", Edit: word("use", 1, is(""))},
	{Name: "tube-of-201-bytes", About: "The client watches a tube whose name has 201 bytes.", Rule: "beanstalk.name.length", Edit: word("watch", 1, is(strings.Repeat("t", 201)))},
}

// incompleteFaults are messages that the client does not send completely before it waits for the reply.
var incompleteFaults = []fault{
	{Name: "body-without-crlf", About: "The client does not send CR LF after the body of put.", Rule: "beanstalk.message.complete", Verdict: "hung", Edit: without("put", len(crlf))},
	{Name: "body-ends-with-lf", About: "The client sends LF alone after the body of put.", Rule: "beanstalk.message.complete", Verdict: "hung", Edit: ends("put", "\n")},
	{Name: "body-ends-with-two-lf", About: "The client sends two LF after the body of put.", Rule: "beanstalk.message.complete", Verdict: "hung", Edit: ends("put", "\n\n")},
	{Name: "body-not-sent", About: "The client sends the line of put without the body.", Rule: "beanstalk.message.complete", Verdict: "hung", Edit: wholeLine("put", func(l string) string { return l + crlf })},
	{Name: "body-cut-off", About: "The client sends only one byte of the body of put.", Rule: "beanstalk.message.complete", Verdict: "hung",
		Edit: edit.Raw("put", func(b []byte) []byte { return b[:bytes.Index(b, []byte(crlf))+len(crlf)+1] })},
	{Name: "size-with-the-crlf", About: "The client counts the CR LF after the body in the size of put.", Rule: "beanstalk.message.complete", Verdict: "hung", Edit: size(len(crlf))},
	{Name: "line-without-end", About: "The client sends delete without CR LF.", Rule: "beanstalk.message.complete", Verdict: "hung", Edit: without("delete", len(crlf))},
	{Name: "line-ends-with-lf", About: "The client ends use with LF alone.", Rule: "beanstalk.message.complete", Verdict: "hung", Edit: ends("use", "\n")},
	{Name: "line-ends-with-cr", About: "The client ends watch with CR alone.", Rule: "beanstalk.message.complete", Verdict: "hung", Edit: ends("watch", "\r")},
	{Name: "half-a-command", About: "The client sends only the first half of reserve-with-timeout.", Rule: "beanstalk.message.complete", Verdict: "hung", Edit: edit.Raw("reserve-with-timeout", func(b []byte) []byte { return b[:len(b)/2] })},
	{Name: "command-without-id", About: "The client sends touch without its argument and without CR LF.", Rule: "beanstalk.message.complete", Verdict: "hung", Edit: wholeLine("touch", func(string) string { return "touch " })},
}

// ownerFaults are requests about jobs that the connection has not reserved, or has already deleted or given back.
var ownerFaults = []fault{
	{Name: "deletes-twice", About: "The client sends delete twice for the same job.", Rule: ownJobs, Edit: edit.After("delete", "delete {ID}")},
	{Name: "touches-after-delete", About: "The client sends touch for a job that it has deleted.", Rule: ownJobs, Edit: edit.After("delete", "touch {ID}")},
	{Name: "releases-after-delete", About: "The client sends release for a job that it has deleted.", Rule: ownJobs, Edit: edit.After("delete", "release {ID} 0 0")},
	{Name: "releases-twice", About: "The client sends release twice for the same job.", Rule: ownJobs, Edit: edit.After("release", "release {ID} {PRI} {DELAY}")},
	{Name: "touches-after-release", About: "The client sends touch for a job that it has released.", Rule: ownJobs, Edit: edit.After("release", "touch {ID}")},
	{Name: "buries-after-release", About: "The client sends bury for a job that it has released.", Rule: ownJobs, Edit: edit.After("release", "bury {ID} {PRI}")},
	{Name: "buries-twice", About: "The client sends bury twice for the same job.", Rule: ownJobs, Edit: edit.After("bury", "bury {ID} {PRI}")},
	{Name: "releases-after-bury", About: "The client sends release for a job that it has buried.", Rule: ownJobs, Edit: edit.After("bury", "release {ID} {PRI} 0")},
	{Name: "touches-after-bury", About: "The client sends touch for a job that it has buried.", Rule: ownJobs, Edit: edit.After("bury", "touch {ID}")},
	{Name: "touches-before-it-peeks", About: "The client sends touch for a job that it has not reserved, before peek.", Rule: ownJobs, Edit: edit.Before("peek", "touch {ID}")},
	{Name: "buries-what-it-peeks-at", About: "The client sends bury for a job that it has not reserved, after peek.", Rule: ownJobs, Edit: edit.After("peek", "bury {ID} 0")},
	{Name: "releases-before-stats", About: "The client sends release for a job that it has not reserved, before stats-job.", Rule: ownJobs, Edit: edit.Before("stats-job", "release {ID} 0 0")},
}

// ownJobs is the rule that a client gives back, buries and touches only jobs that the connection has reserved.
const ownJobs = "beanstalk.client.own-jobs"

// logic are legal requests that do not do what the task says.
var logic = []fault{
	{Name: "delay-before-priority", About: "The client sends the delay before the priority in put.", Verdict: "wrong result", Edit: edit.SendInstead("put", "put {DELAY} {PRI} {TTR} {BODY}")},
	{Name: "delay-before-priority-in-release", About: "The client sends the delay before the priority in release.", Verdict: "wrong result", Edit: edit.SendInstead("release", "release {ID} {DELAY} {PRI}")},
	{Name: "delay-divided-by-1000", About: "The client takes the delay of release for milliseconds and rounds it down to 0 seconds.", Verdict: "wrong result", Edit: word("release", 3, dividedBy(1000))},
	{Name: "timeout-divided-by-1000", About: "The client takes the timeout of reserve for milliseconds and rounds it down to 0 seconds.", Verdict: "failed cleanly", Edit: word("reserve-with-timeout", 1, dividedBy(1000))},
	{Name: "timeout-ignored", About: "The client sends reserve instead of reserve-with-timeout.", Verdict: "hung", Edit: edit.SendInstead("reserve-with-timeout", "reserve")},
	{Name: "kicks-the-used-tube", About: "The client sends kick without using the tube of the task.", Verdict: "wrong result",
		Edit: func(p *program) { p.Use[0].If = func(t *task) bool { return t.Bound == nil } }},
	{Name: "never-ignores", About: "The client continues to watch the tubes of earlier tasks.", Verdict: "wrong result", Edit: func(p *program) { p.Ignore = nil }},
	{Name: "never-watches", About: "The client does not send watch for the tubes of the task.", Verdict: "failed cleanly", Edit: func(p *program) { p.Watch = nil }},
	{Name: "reserves-two-jobs", About: "The client reserves a second job and forgets it.", Verdict: "wrong result", Edit: edit.After("reserve-with-timeout", "reserve-with-timeout 0")},
	{Name: "releases-instead-of-burying", About: "The client releases jobs that it should bury.", Verdict: "wrong result", Edit: edit.SendInstead("bury", "release {ID} {PRI} 0")},
	{Name: "peeks-at-any-job", About: "The client peeks at the job that is ready next instead of the job of the task.", Verdict: "wrong result", Edit: edit.SendInstead("peek", "peek-ready")},
	{Name: "gives-up-and-goes-on", About: "The client stops waiting for the reply to reserve, and sends the next request on the same connection.", Verdict: "hung",
		Edit: func(p *program) { p.OwnLimit, p.ReusesFailed = true, true }},
	{Name: "reply-to-ignore-not-read", About: "The client expects no reply to ignore, and uses this reply as the reply to the next request.", Verdict: "failed cleanly",
		Edit: both(edit.Raw("watch", func(b []byte) []byte { return append(b, "ignore default\r\n"...) }), func(p *program) { p.Ignore = nil })},
	{Name: "reply-to-watch-not-read", About: "The client expects no reply to watch of a tube that it has used, and uses this reply as the reply to the next request.", Verdict: "failed cleanly",
		Edit: edit.Raw("use", func(b []byte) []byte { return append(b, bytes.Replace(b, []byte("use"), []byte("watch"), 1)...) })},
}
