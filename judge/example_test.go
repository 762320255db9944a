package judge_test

import (
	"fmt"
	"time"

	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/judge"
)

// Check the messages on a connection. A server must not reply without a request.
func Example() {
	monitor := judge.New(gearman.Protocol)
	session := gearman.Protocol.NewSession(codec.Options{})
	const connection = 1
	monitor.Open(connection)
	for i, sent := range []struct {
		from codec.Side
		raw  string
	}{
		{codec.Peer, "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x04test"},   // ECHO_REQ
		{codec.Server, "\x00RES\x00\x00\x00\x11\x00\x00\x00\x04test"}, // ECHO_RES
		{codec.Server, "\x00RES\x00\x00\x00\x11\x00\x00\x00\x04test"},
	} {
		var frame codec.Frame
		if _, err := session.Decode(sent.from, []byte(sent.raw), &frame); err != nil {
			fmt.Println(err)
			return
		}
		at := int64(time.Duration(i) * time.Millisecond)
		for _, v := range monitor.Message(connection, &frame, at, nil) {
			fmt.Printf("message %d: %v\n", i+1, v.Err())
		}
	}
	// Output: message 3: byte 12, Data: the server sent ECHO_RES, but no ECHO_REQ with this data waits for a reply [gearman.echo.same-data]
}
