package target

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"jobwire/internal/transport"
)

// errCommand is matched by the errors of invalid command lines. They are errors of the user, not of the target.
var errCommand = errors.New("invalid command line")

// Split splits a command line into words as a shell does: at spaces, with single quotes, double quotes and backslashes.
// The command is started without a shell, so Split rejects pipes, variables and other characters that only a shell
// handles.
func Split(line string) ([]string, error) {
	const shellOnly = "|&;<>()$`"
	var words []string
	var word strings.Builder
	open := false // a word has begun; it may still be empty: ''
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n':
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
			continue
		case c == '\'':
			k := strings.IndexByte(line[i+1:], '\'')
			if k < 0 {
				return nil, badCommand(line, "the single quote is not closed")
			}
			word.WriteString(line[i+1 : i+1+k])
			i += 1 + k
		case c == '"':
			k, err := doubleQuoted(&word, line[i+1:])
			if err != "" {
				return nil, badCommand(line, err)
			}
			i += k
		case c == '\\' && i+1 == len(line):
			return nil, badCommand(line, "the command ends with a backslash")
		case c == '\\':
			i++
			word.WriteByte(line[i])
		case strings.IndexByte(shellOnly, c) >= 0:
			return nil, badCommand(line, fmt.Sprintf("%q is special only in a shell, and jobwire starts commands without a shell: quote it, or use sh -c '...'", c))
		default:
			word.WriteByte(c)
		}
		open = true
	}
	if open {
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, badCommand(line, "the command is empty")
	}
	return words, nil
}

// doubleQuoted appends the text before the closing quote to word. It returns the number of bytes of s that it read,
// including the quote, or what is wrong.
func doubleQuoted(word *strings.Builder, s string) (n int, bad string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1, ""
		case c == '\\' && i+1 < len(s) && strings.IndexByte("\\\"$`", s[i+1]) >= 0:
			i++
			word.WriteByte(s[i])
		case c == '$' || c == '`':
			return 0, fmt.Sprintf("%q is special only in a shell, and jobwire starts commands without a shell: quote it, or use sh -c '...'", c)
		default:
			word.WriteByte(c)
		}
	}
	return 0, "the double quote is not closed"
}

func badCommand(line, why string) error {
	return fmt.Errorf("%w %q: %s", errCommand, line, why)
}

// Expand replaces {addr} in the words of a command, {host} and {port} by the parts of a TCP address, and {socket} by
// the path of a Unix socket.
func Expand(args []string, addr string) ([]string, error) {
	values := []string{"{addr}", addr}
	if path, ok := transport.Path(addr); ok {
		if contains(args, "{host}", "{port}") {
			return nil, badCommand(Join(args), "the address is that of a Unix socket, which has no host and port: use {addr} or {socket}")
		}
		values = append(values, "{socket}", path)
	} else {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		values = append(values, "{host}", host, "{port}", port)
	}
	r := strings.NewReplacer(values...)
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = r.Replace(a)
	}
	return out, nil
}

// contains reports whether an argument contains one of the placeholders.
func contains(args []string, placeholders ...string) bool {
	for _, a := range args {
		for _, p := range placeholders {
			if strings.Contains(a, p) {
				return true
			}
		}
	}
	return false
}

// Join returns the words of a command as a line that Split and shells split into the same words.
func Join(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\|&;<>()$`*?[]#~!") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words[i] = a
	}
	return strings.Join(words, " ")
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Check returns the [errCommand] that [Exec] would return for a command line.
func Check(line string) error {
	args, err := Split(line)
	if err != nil {
		return err
	}
	return checkArgs(args)
}

// checkArgs returns an error if the command of a server has no placeholder for the address on which the server must
// listen, or contains both a port and a socket.
func checkArgs(args []string) error {
	if len(args) == 0 {
		return badCommand("", "the command is empty")
	}
	port, socket := contains(args, "{port}", "{host}"), contains(args, "{socket}")
	switch {
	case port && socket:
		return badCommand(Join(args), "{socket} is used together with {port} or {host}: the server listens either on a Unix socket or on a port")
	case !socket && !contains(args, "{port}", "{addr}"):
		return badCommand(Join(args), "add {port} or {addr} at the place where the program expects the port or address to listen on, or {socket} for the path of a Unix socket")
	}
	return nil
}
