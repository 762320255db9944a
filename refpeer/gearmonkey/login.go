package gearmonkey

import (
	"fmt"
	"net"
	"strings"
)

// maxReply limits the first line of a reply, in bytes.
const maxReply = 4 << 10

// loginMissing begins the reply to a command of a connection that must log in first.
const loginMissing = "-NOAUTH "

// Login logs in with AUTH. Without a user name, Redis logs in its default user. The error is that of the server, which
// does not contain the password, or that of the connection. Without a password Login sends PING instead, and returns an
// error only if the server replies that it requires a login.
func Login(nc net.Conn, user, password string) error {
	if password == "" {
		if reply, err := request(nc, "PING"); err == nil && strings.HasPrefix(reply, loginMissing) {
			return fmt.Errorf("the server replied %q to PING", reply[1:])
		}
		return nil
	}
	words := []string{"AUTH", user, password}
	if user == "" {
		words = []string{"AUTH", password}
	}
	reply, err := request(nc, words...)
	if err == nil && reply != "+OK" {
		err = fmt.Errorf("the server replied %q to AUTH", strings.TrimPrefix(reply, "-"))
	}
	return err
}

// request sends a command and returns the first line of the reply.
func request(nc net.Conn, words ...string) (reply string, err error) {
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := nc.Write(out); err != nil {
		return "", err
	}
	// Read single bytes, so that nothing after the reply is read.
	var line strings.Builder
	for b := make([]byte, 1); !strings.HasSuffix(line.String(), "\r\n"); line.Write(b) {
		if line.Len() == maxReply {
			return "", fmt.Errorf("the reply to %s is longer than 4 KiB", words[0])
		}
		if _, err := nc.Read(b); err != nil {
			return "", err
		}
	}
	return strings.TrimSuffix(line.String(), "\r\n"), nil
}
