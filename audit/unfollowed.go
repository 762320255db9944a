package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
)

// Unfollowed counts bytes that were not checked, because it is unknown where their messages begin or what they mean.
type Unfollowed struct {
	By          codec.Side `json:"-"`
	Reason      string     `json:"reason"`
	Bytes       int        `json:"bytes"`
	Connections int        `json:"connections"`
}

// Outage counts the connections for which the server could not be reached.
type Outage struct {
	Connections int     `json:"connections"`
	First       float64 `json:"first_seconds"` // since the beginning
	Reason      string  `json:"reason"`        // of the first one
}

// unreachable records that the server could not be reached for a connection. It is an outage unless the audit ended.
func (a *Auditor) unreachable(err error, outage bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := time.Since(a.begun)
	a.behavior.Unreachable(at)
	if !outage {
		return
	}
	if a.outage == nil {
		a.outage = &Outage{First: at.Seconds(), Reason: err.Error()}
	}
	a.outage.Connections++
}

// Reasons why the messages of one side are not followed.
const (
	endUnknown = "a message does not show where it ends"
	earlyReply = "the server sent an illegal message while a request was incomplete, so it is unknown to which requests " +
		"its later replies belong"
	requestsUnknown = "the requests are not known, and the server's replies depend on them"
	beyondMemory    = "there are more connections, or requests and jobs on one connection, than are kept in memory, so " +
		"that only the form of messages was checked"
	repliesUnknown = "it is unknown to which requests the replies belong after a command with no reply or several, or after " +
		"an error that does not name the rejected request, so that only the form of messages was checked"
	afterIllegal = "an illegal message came before on the connection, so that only the form of later messages was checked"
)

// unchecked counts a connection of which one side is not checked for a reason, and returns what counts its bytes.
func (a *Auditor) unchecked(from codec.Side, reason string) *Unfollowed {
	k := slices.IndexFunc(a.unfollowed, func(u *Unfollowed) bool { return u.By == from && u.Reason == reason })
	if k < 0 {
		k = len(a.unfollowed)
		a.unfollowed = append(a.unfollowed, &Unfollowed{By: from, Reason: reason})
	}
	a.unfollowed[k].Connections++
	return a.unfollowed[k]
}

// formOnly counts a message in a.frame of which only the form was checked, for a reason.
func (a *Auditor) formOnly(c *conn, from codec.Side, reason string) {
	if c.form[from] == nil {
		c.form[from] = a.unchecked(from, reason)
	}
	c.form[from].Bytes += len(a.frame.Raw)
}

// loses stops to follow a side of a connection, of which some bytes have arrived that were not checked. The other side
// is followed, unless it is the server, and its replies depend on requests.
func (a *Auditor) loses(c *conn, from codec.Side, reason string, bytes int) {
	u := a.unchecked(from, reason)
	u.Bytes += bytes
	c.lost[from], c.streams[from] = u, codec.Stream{}
	a.checks.Gap(c.id)
	a.behavior.Gap(c.id)
	c.requests.Forget()
	if from == codec.Peer && a.opts.Protocol.Binary == nil && c.lost[codec.Server] == nil {
		a.loses(c, codec.Server, requestsUnknown, len(c.streams[codec.Server].Rest()))
	}
}

// binary reports whether a message that begins like this is one whose end and type depend on no other message, or, for
// nil, whether all messages are.
func (a *Auditor) binary(begin []byte) bool {
	return a.opts.Protocol.Binary != nil && a.opts.Protocol.Binary(begin)
}

// renew gives the requests on a connection a new session if nothing decodes their replies: a session keeps each request
// until its reply. The session of a binary protocol knows properties of the whole connection.
func (a *Auditor) renew(c *conn) {
	if c.lost[codec.Server] != nil && c.lost[codec.Peer] == nil && !a.binary(nil) {
		c.streams[codec.Peer].Session = a.opts.Protocol.NewSession(a.opts.Codec)
	}
}

// Incomplete returns which bytes were not checked and why, or "" if all were. An audit that has not followed all
// messages has not passed.
func (r *Report) Incomplete() string {
	var all []string
	for _, u := range r.Unfollowed {
		all = append(all, u.text(r.Protocol))
	}
	return strings.Join(all, "; ")
}

// sender returns the name of the side whose bytes were not followed.
func (u *Unfollowed) sender(p *codec.Protocol) string {
	if u.By == codec.Server {
		return "the server (" + p.ServerName + ")"
	}
	return "clients and workers"
}

func (u *Unfollowed) text(p *codec.Protocol) string {
	return fmt.Sprintf("not checked: %d bytes from %s on %d connections: %s", u.Bytes, u.sender(p), u.Connections,
		u.Reason)
}
