package mutants

import (
	"bytes"
	"slices"
	"strconv"

	"jobwire/codec"
	protocol "jobwire/codec/beanstalk"
	"jobwire/refpeer/internal/faults"
	"jobwire/refpeer/internal/line"
)

const crlf = "\r\n"

// word replaces one word of the line of a message; the command is word 0.
func word(typ string, i int, with func(string) string) func(*program) {
	return edit.Raw(typ, func(b []byte) []byte {
		line, rest, _ := bytes.Cut(b, []byte(crlf))
		words := bytes.Split(line, []byte(" "))
		words[i] = []byte(with(string(words[i])))
		return slices.Concat(bytes.Join(words, []byte(" ")), []byte(crlf), rest)
	})
}

// is returns a function that returns the same word for any word.
func is(value string) func(string) string { return func(string) string { return value } }

// times multiplies a number.
func times(factor uint64) func(string) string {
	return func(s string) string {
		n, _ := strconv.ParseUint(s, 10, 64)
		return strconv.FormatUint(n*factor, 10)
	}
}

// dividedBy divides a number and drops the remainder.
func dividedBy(divisor uint64) func(string) string {
	return func(s string) string {
		n, _ := strconv.ParseUint(s, 10, 64)
		return strconv.FormatUint(n/divisor, 10)
	}
}

// wholeLine replaces the line of a message. A body is not sent.
func wholeLine(typ string, with func(line string) string) func(*program) {
	return edit.Raw(typ, func(b []byte) []byte {
		line, _, _ := bytes.Cut(b, []byte(crlf))
		return []byte(with(string(line)))
	})
}

// size changes the size in the line of put.
func size(by int) func(*program) {
	return word("put", 4, func(s string) string {
		n, _ := strconv.Atoi(s)
		return strconv.Itoa(n + by)
	})
}

// without does not send the last bytes of a message.
func without(typ string, n int) func(*program) {
	return edit.Raw(typ, func(b []byte) []byte { return b[:len(b)-n] })
}

// ends replaces the CR LF at the end of a message.
func ends(typ, with string) func(*program) {
	return edit.Raw(typ, func(b []byte) []byte { return append(b[:len(b)-len(crlf)], with...) })
}

// takes handles a reply as if it were another one.
func takes(reply, as string, args ...string) func(*program) {
	return edit.Has(func(h *line.Quirks) {
		h.Edit = func(m *codec.Message) error {
			if m.Type.Name == reply {
				m.Type, m.Args = protocol.Protocol.TypeNamed(as), nil
				for _, a := range args {
					m.Args = append(m.Args, []byte(a))
				}
			}
			return nil
		}
	})
}

// both makes two edits.
func both(first, second func(*program)) func(*program) {
	return func(p *program) {
		first(p)
		second(p)
	}
}

// ids changes the job IDs in the replies to put.
func ids(change func(id uint64) string) func(*program) {
	return edit.EditReceived(faults.First(func(b []byte) []byte {
		n, _ := strconv.ParseUint(string(b), 10, 64)
		return []byte(change(n))
	}), "INSERTED")
}
