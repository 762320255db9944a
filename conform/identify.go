package conform

import (
	"context"
	"fmt"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/play"
)

// identifyTimeout is the timeout of a reply to a barrier request while the protocol of a server is identified. A TLS
// handshake has [play.DefaultTimeout]: without it, every case would fail on a slow server that uses TLS.
const identifyTimeout = time.Second

// CheckProtocol returns an error that matches [target.ErrUnreachable] if the target is a server of another protocol, or
// uses TLS and is not connected to with TLS. It returns nil if the protocol of the target remains unknown.
func CheckProtocol(ctx context.Context, p *codec.Protocol, t target.Target) error {
	if _, other := identify(ctx, p, t); other != "" {
		return &target.Error{Target: t.String(), Reason: fmt.Sprintf("cannot be used as a server of %s: %s", p.Title, other)}
	}
	return nil
}

// identify sends a barrier request of the protocol own. If the server replies as expected, identify returns the
// transcript of the request and the reply. Otherwise it tries the barrier requests of all other protocols and a TLS
// handshake. If the server replies to one of them, other is a sentence about that.
func identify(ctx context.Context, own *codec.Protocol, t target.Target) (barrier *transcript.Script, other string) {
	dial := dialer(t, identifyTimeout)
	answers := func(script *transcript.Script) bool {
		return script != nil && play.Peers(ctx, script, dial, play.Options{Timeout: identifyTimeout}).Failure == nil
	}
	if barrier = barrierScript(own); answers(barrier) {
		return barrier, ""
	}
	for _, p := range codec.Protocols() {
		if p != own && answers(barrierScript(p)) {
			return nil, "it answers as a server of " + p.Title
		}
	}
	if !target.Dialer(t).Plain() {
		return nil, ""
	}
	c, err := dial(ctx, transcript.Actor{})
	if err != nil {
		return nil, ""
	}
	defer c.Close()
	if transport.UsesTLS(c, play.DefaultTimeout) {
		return nil, "it uses TLS: add --tls"
	}
	return nil, ""
}

// barrierScript returns the transcript of a barrier request and its reply, or nil if the protocol has no barrier.
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
