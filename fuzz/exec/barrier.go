package exec

import (
	"bytes"
	"slices"
	"strings"

	"jobwire/codec"
)

// Barrier is a request that changes nothing and to which the server must reply at once.
type Barrier struct {
	Protocol *codec.Protocol
	declared codec.Barrier
	request  *codec.Type
	Reply    *codec.Type
	Nonced   bool // the reply contains the nonce of the request
}

// NewBarrier returns the barrier that the contract of p declares as b.
func NewBarrier(p *codec.Protocol, b codec.Barrier) *Barrier {
	hasNonce := func(s string) bool { return strings.Contains(s, codec.Nonce) }
	return &Barrier{p, b, p.TypeNamed(b.Request[0]), p.TypeNamed(b.Reply[0]), slices.ContainsFunc(b.Reply, hasNonce)}
}

// Name returns the request without its nonce.
func (b *Barrier) Name() string {
	hasNonce := func(s string) bool { return strings.Contains(s, codec.Nonce) }
	return strings.Join(slices.DeleteFunc(slices.Clone(b.declared.Request), hasNonce), " ")
}

// Message returns the request with a nonce.
func (b *Barrier) Message(nonce []byte) codec.Message {
	m := codec.Message{Type: b.request}
	for _, a := range b.declared.Request[1:] {
		m.Args = append(m.Args, []byte(strings.ReplaceAll(a, codec.Nonce, string(nonce))))
	}
	return m
}

// answered reports whether a message is the reply to the request with the nonce.
func (b *Barrier) answered(f *codec.Frame, nonce []byte) bool {
	if b.Nonced {
		return bytes.Contains(f.Raw, nonce)
	}
	for i, v := range b.declared.Reply[1:] {
		if string(f.Arg(i)) != v {
			return false
		}
	}
	return f.Type == b.Reply
}
