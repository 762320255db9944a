package gearmonkey

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// maxReply limits the reply to AUTH, in bytes.
const maxReply = 4 << 10

// Login logs in with AUTH. Without a user name, Redis logs in its default user. The error is that of the server, which does not
// contain the password, or that of the connection.
func Login(nc net.Conn, user, password string) error {
	words := []string{"AUTH", user, password}
	if user == "" {
		words = []string{"AUTH", password}
	}
	out := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := nc.Write(out); err != nil {
		return err
	}
	// Read single bytes, so that nothing after the reply is read.
	var line strings.Builder
	for b := make([]byte, 1); !strings.HasSuffix(line.String(), "\r\n"); line.Write(b) {
		if line.Len() == maxReply {
			return errors.New("the reply to AUTH is longer than 4 KiB")
		}
		if _, err := nc.Read(b); err != nil {
			return err
		}
	}
	if reply := strings.TrimSuffix(line.String(), "\r\n"); reply != "+OK" {
		return fmt.Errorf("the server replied %q to AUTH", strings.TrimPrefix(reply, "-"))
	}
	return nil
}
