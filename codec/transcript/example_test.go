package transcript_test

import (
	"fmt"
	"os"

	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
)

// Parse a transcript, and print it with the bytes of its messages.
func Example() {
	scripts, err := transcript.Parse(gearman.Protocol, "echo.wire", []byte(`
Client -> Job Server: ECHO_REQ test
Job Server -> Client: ECHO_RES test
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := transcript.Bytes(os.Stdout, scripts[0]); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Client -> Job Server
	// 00 52 45 51                \0REQ        (Magic)
	// 00 00 00 10                16           (Packet type: ECHO_REQ)
	// 00 00 00 04                4            (Packet length)
	// 74 65 73 74                test         (Data)
	//
	// Job Server -> Client
	// 00 52 45 53                \0RES        (Magic)
	// 00 00 00 11                17           (Packet type: ECHO_RES)
	// 00 00 00 04                4            (Packet length)
	// 74 65 73 74                test         (Data)
}
