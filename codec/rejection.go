package codec

// Rejection is how a server may reply to an illegal message that does not end the connection.
type Rejection struct {
	// the replies that say that the message is illegal and has changed nothing; the preferred one first
	Replies  []*Type
	Performs bool // the server may also perform the request, because not every server reads it as illegal
	Closes   bool // the server may also close the connection
	Unclear  bool // servers differ in where the next message begins
	// if servers differ in where the next message begins, but the rules say where: the rule
	Resync RuleID
}

// Has reports whether a message of the type says that the illegal message was rejected.
func (r *Rejection) Has(t *Type) bool {
	for _, o := range r.Replies {
		if o == t {
			return true
		}
	}
	return false
}

// Labels returns the replies for texts for users, such as "BAD_FORMAT or UNKNOWN_COMMAND".
func (r *Rejection) Labels() (s string) {
	for i, t := range r.Replies {
		if i > 0 {
			s += " or "
		}
		s += t.Label()
	}
	return s
}
