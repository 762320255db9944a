package fuzz

import (
	"bytes"
	"slices"
	"strings"

	"jobwire/codec"
)

// barrier is a request that changes nothing and to which the server must reply at once.
type barrier struct {
	protocol *codec.Protocol
	declared codec.Barrier
	request  *codec.Type
	reply    *codec.Type
	nonced   bool // the reply contains the nonce of the request
}

func newBarrier(p *codec.Protocol, b codec.Barrier) *barrier {
	hasNonce := func(s string) bool { return strings.Contains(s, codec.Nonce) }
	return &barrier{p, b, p.TypeNamed(b.Request[0]), p.TypeNamed(b.Reply[0]), slices.ContainsFunc(b.Reply, hasNonce)}
}

// name returns the request without its nonce.
func (b *barrier) name() string {
	hasNonce := func(s string) bool { return strings.Contains(s, codec.Nonce) }
	return strings.Join(slices.DeleteFunc(slices.Clone(b.declared.Request), hasNonce), " ")
}

// message returns the request with a nonce.
func (b *barrier) message(nonce []byte) codec.Message {
	m := codec.Message{Type: b.request}
	for _, a := range b.declared.Request[1:] {
		m.Args = append(m.Args, []byte(strings.ReplaceAll(a, codec.Nonce, string(nonce))))
	}
	return m
}

// answered reports whether a message is the reply to the request with the nonce.
func (b *barrier) answered(f *codec.Frame, nonce []byte) bool {
	if b.nonced {
		return bytes.Contains(f.Raw, nonce)
	}
	for i, v := range b.declared.Reply[1:] {
		if string(f.Arg(i)) != v {
			return false
		}
	}
	return f.Type == b.reply
}
