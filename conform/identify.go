package conform

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/play"
)

// identifyTimeout is the timeout of a reply to a barrier request if none is given.
const identifyTimeout = time.Second

// CheckProtocol returns an error that matches [target.ErrUnreachable] if the target is a server of another protocol, or
// uses TLS and is not connected to with TLS. It returns nil if the protocol of the target remains unknown.
func CheckProtocol(ctx context.Context, p *codec.Protocol, t target.Target) error {
	if _, _, other := identify(ctx, p, t, identifyTimeout); other != "" {
		return &target.Error{Target: t.String(), Reason: fmt.Sprintf("cannot be used as a server of %s: %s", p.Title, other)}
	}
	return nil
}

// identify sends the preferred barrier request of the protocol own. If the server does not reply to it as expected,
// identify sends the other barrier requests of all protocols, each on a connection of its own. It returns the
// transcript of the first one of the protocol own that the server answers, and the time until the reply. If the server
// answers one of another protocol or a TLS handshake, other is a sentence about that. timeout limits each reply, but a
// TLS handshake has [play.DefaultTimeout]: without it, every case would fail on a slow server that uses TLS.
func identify(ctx context.Context, own *codec.Protocol, t target.Target, timeout time.Duration) (
	barrier *transcript.Script, took time.Duration, other string,
) {
	dial := dialer(t, timeout)
	type probe struct {
		p        *codec.Protocol
		script   *transcript.Script
		answered bool
		took     time.Duration
	}
	var probes []*probe
	add := func(p *codec.Protocol) {
		for _, b := range p.Barriers {
			probes = append(probes, &probe{p: p, script: barrierScript(p, b)})
		}
	}
	add(own)
	for _, p := range codec.Protocols() {
		if p != own {
			add(p)
		}
	}
	try := func(all ...*probe) {
		var wait sync.WaitGroup
		for _, one := range all {
			wait.Go(func() {
				began := time.Now()
				one.answered = play.Peers(ctx, one.script, dial, probeOptions(timeout)).Failure == nil
				one.took = time.Since(began)
			})
		}
		wait.Wait()
	}
	if try(probes[:1]...); !probes[0].answered {
		try(probes[1:]...)
	}
	if i := slices.IndexFunc(probes, func(one *probe) bool { return one.answered }); i >= 0 {
		if probes[i].p == own {
			return probes[i].script, probes[i].took, ""
		}
		return nil, 0, "it answers as a server of " + probes[i].p.Title
	}
	if !target.Dialer(t).Plain() {
		return nil, 0, ""
	}
	c, err := dial(ctx, transcript.Actor{})
	if err != nil {
		return nil, 0, ""
	}
	defer c.Close()
	if transport.UsesTLS(c, play.DefaultTimeout) {
		return nil, 0, "it uses TLS: add --tls"
	}
	return nil, 0, ""
}

// barrierScript returns the transcript of a barrier request and its reply.
func barrierScript(p *codec.Protocol, b codec.Barrier) *transcript.Script {
	request, reply := b.Request, b.Reply
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
		panic(err) // the contract of the protocol defines a barrier that cannot be written
	}
	return scripts[0]
}

// probeOptions returns the options with which a barrier request is played. The replies to it are short.
func probeOptions(timeout time.Duration) play.Options {
	return play.Options{Timeout: timeout, Keep: 1, Codec: codec.Options{MaxData: 64 << 10}}
}
