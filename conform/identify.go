package conform

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/play"
)

// identifyTimeout is how long a server may take for the reply that shows its protocol.
const identifyTimeout = time.Second

// identify returns the protocol of a server that does not answer as one of its own protocol, but as one of another:
// it sends the barrier request of each. If the server answers as expected, it returns the transcript of its own barrier
// request.
func identify(ctx context.Context, own *codec.Protocol, dial play.Dialer) (barrier *transcript.Script, other *codec.Protocol) {
	answers := func(script *transcript.Script) bool {
		return script != nil && play.Peers(ctx, script, dial, play.Options{Timeout: identifyTimeout}).Failure == nil
	}
	if barrier = barrierScript(own); answers(barrier) {
		return barrier, nil
	}
	for _, p := range codec.Protocols() {
		if p != own && answers(barrierScript(p)) {
			return nil, p
		}
	}
	return nil, nil
}

// barrierScript returns the transcript of a barrier request and its reply, or nil if the protocol has none.
func barrierScript(p *codec.Protocol) *transcript.Script {
	request, reply := p.Barrier.Request, p.Barrier.Reply
	if len(request) == 0 {
		return nil
	}
	step := func(from, to string, words []string, open bool) string {
		t := p.TypeNamed(words[0])
		line := fmt.Sprintf("%s -> %s: %s", from, to, t.Name)
		for _, value := range words[1:] {
			line += " " + transcript.Quote(strings.ReplaceAll(value, codec.Nonce, "jobwire"))
		}
		if least, _, _ := t.Arity(); open && least > len(words)-1 {
			line += strings.Repeat(" *", least-(len(words)-1))
		}
		return line + "\n"
	}
	peer, _, _ := strings.Cut(p.RoleNames(p.TypeNamed(request[0]).Req), "/")
	scripts, err := transcript.Parse(p, "", []byte(step(peer, p.ServerName, request, false)+step(p.ServerName, peer, reply, true)))
	if err != nil {
		return nil
	}
	return scripts[0]
}
