package resp

import (
	"bytes"

	"jobwire/codec"
)

// effects maps words, in small letters, to their effects: how a command, or the first word of a push, changes the
// matching of requests and replies, apart from the one reply for a request.
var effects = map[string]codec.ReplyEffect{
	"subscribe": {Counts: "channels"}, "unsubscribe": {Counts: "channels", Ends: true},
	"psubscribe": {Counts: "patterns"}, "punsubscribe": {Counts: "patterns", Ends: true},
	"ssubscribe": {Counts: "shards"}, "sunsubscribe": {Counts: "shards", Ends: true},
	"client": {Mode: true}, "monitor": {NoEnd: true}, "sync": {NoEnd: true}, "psync": {NoEnd: true},
	"reset": {Resets: true},
}

// request is a request that waits for its reply.
type request struct {
	form   *form // the form of a specific type, whose typed replies may answer it; nil for other requests
	effect codec.ReplyEffect
	left   int // number of channels whose confirmation the request still waits for; -1: all subscribed channels
}

// pending matches replies with requests.
type pending struct {
	queue codec.FIFO[request]

	channels, patterns, shards int // numbers of subscriptions

	noReplies        bool // set by CLIENT REPLY OFF
	skip             int  // number of next requests without a reply, after CLIENT REPLY SKIP
	allowUnrequested bool // replies without a request are allowed
}

// waiting returns the number of requests without a reply.
func (p *pending) waiting() int { return p.queue.Len() }

// oldest returns the request that will be answered next, or nil.
func (p *pending) oldest() *request {
	if p.waiting() == 0 {
		return nil
	}
	return p.queue.At(0)
}

// answered removes the oldest request.
func (p *pending) answered() {
	if r := p.oldest(); r != nil {
		if r.effect.Resets {
			p.channels, p.patterns, p.shards = 0, 0, 0
		}
		p.queue.Pop()
	}
}

// asked adds a request. words are the first words of the request, as far as effects depend on them; count is
// the number of all words.
func (p *pending) asked(r request, words [][]byte, count int) {
	noReplies := p.noReplies || p.skip > 0
	p.skip = max(0, p.skip-1)
	switch e := r.effect; {
	case e.Counts != "":
		r.left = count - 1
		if count == 1 && e.Ends {
			r.left = -1
		}
	case e.NoEnd:
		p.allowUnrequested = true
	case e.Resets:
		p.noReplies, p.skip, noReplies = false, 0, false
	case e.Mode && count == 3 && isWord(words[1], "reply"):
		switch mode := words[2]; {
		case isWord(mode, "on"):
			p.noReplies, noReplies = false, false
		case isWord(mode, "off"):
			p.noReplies, p.allowUnrequested, noReplies = true, true, true
		case isWord(mode, "skip") && !p.noReplies:
			p.skip, p.allowUnrequested, noReplies = 1, true, true
		}
	}
	if noReplies {
		return
	}
	p.queue.Push(r)
}

// pushable reports whether an array may be a published message of RESP2, which differs from a reply only in
// its first word.
func (p *pending) pushable() bool {
	r := p.oldest()
	return r == nil || r.effect.Counts != "" || p.channels+p.patterns+p.shards > 0
}

// confirmed handles a push that confirms a subscription or its end. n is the number of subscriptions in the
// push: of channels and patterns together, or of sharded channels.
func (p *pending) confirmed(e codec.ReplyEffect, n int) {
	left := 0
	switch e.Counts {
	case "channels":
		p.channels = max(0, n-p.patterns)
		left = p.channels
	case "patterns":
		p.patterns = max(0, n-p.channels)
		left = p.patterns
	case "shards":
		p.shards = n
		left = n
	}
	r := p.oldest()
	if r == nil || r.effect != e {
		return
	}
	if r.left > 0 {
		r.left--
		left = r.left
	}
	if left == 0 {
		p.answered()
	}
}

// longestCommand is the maximum length of the commands that have an effect or a specific type.
const longestCommand = 16

// effectOf returns the effect of a command, or of the first word of a push.
func effectOf(word []byte) codec.ReplyEffect {
	var buf [longestCommand]byte
	return effects[string(lower(buf[:0], word))]
}

// isWord reports whether b is the word, ignoring letter case.
func isWord(b []byte, word string) bool { return bytes.EqualFold(b, []byte(word)) }

// lower appends a command in small letters, or nothing if the command is longer than the capacity of dst and
// therefore unknown.
func lower(dst, word []byte) []byte {
	if len(word) > cap(dst) {
		return dst
	}
	for _, c := range word {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// pushed handles a push of RESP2. last is its last value, which is the number of subscriptions if the push
// confirms one.
func (p *pending) pushed(fm *form, last []byte) {
	if fm.effect.Counts != "" {
		n, _ := codec.ParseNumber(last)
		p.confirmed(fm.effect, int(n))
	}
}

// pushedTokens handles a push of RESP3 with the spans that scan stored in f.
func (p *pending) pushedTokens(f *codec.Frame) {
	n := len(f.Spans)
	if n < 5 || f.Spans[2].Field != &sizeMark || f.Spans[n-1].Field != &tokenMark {
		return
	}
	if e := effectOf(f.Value(3)); e.Counts != "" {
		count, _ := codec.ParseNumber(f.Value(n - 1)[1:])
		p.confirmed(e, int(count))
	}
}
