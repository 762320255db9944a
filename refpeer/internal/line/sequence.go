package line

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Step is one message of a sequence about a task T.
type Step[T any] struct {
	// Do is the name of the message type and the arguments of the message. {PLACEHOLDERS} are replaced by values of the
	// task. A placeholder followed by ... is replaced by several arguments, which NULs separate in the value.
	Do string

	If  func(*T) bool               // whether to send the message; nil: always
	Raw func(t *T, b []byte) []byte // returns the bytes to send instead of the message's; nil: no change
}

// Sequence contains the messages that are sent in one write.
type Sequence[T any] []Step[T]

// Send appends the messages of a sequence. values contains the placeholders.
func Send[T any](c *Conn, s Sequence[T], t *T, values map[string]func(*T) []byte) error {
	for i := range s {
		st := &s[i]
		if st.If != nil && !st.If(t) {
			continue
		}
		words := strings.Fields(st.Do)
		msgType := c.protocol.TypeNamed(words[0])
		if msgType == nil {
			return fmt.Errorf("%w: unknown message type %s", ErrUsage, words[0])
		}
		var args [][]byte
		for _, w := range words[1:] {
			w, several := strings.CutSuffix(w, "...")
			value := []byte(w)
			if name, ok := strings.CutPrefix(w, "{"); ok {
				value = values[strings.TrimSuffix(name, "}")](t)
			}
			if several {
				args = append(args, bytes.Split(value, []byte{0})...)
			} else {
				args = append(args, value)
			}
		}
		before := len(c.out)
		if err := c.Append(msgType, args...); err != nil {
			return err
		}
		if st.Raw != nil {
			c.out = append(c.out[:before], st.Raw(t, slices.Clone(c.out[before:]))...)
		}
	}
	return nil
}
