package codec_test

import (
	"fmt"

	"jobwire/codec"
	"jobwire/codec/gearman"
)

// Encode a message of a client, and decode it.
func Example() {
	session := gearman.Protocol.NewSession(codec.Options{})
	message := codec.Message{
		Type: codec.Named(gearman.Protocol.Types, "SUBMIT_JOB"),
		Args: [][]byte{[]byte("reverse"), nil, []byte("test")},
	}
	raw, err := session.Append(nil, codec.Peer, &message)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%q\n", raw)

	var frame codec.Frame
	if _, err := session.Decode(codec.Peer, raw, &frame); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: function %s, workload %s\n", frame.Type.Name, frame.Get(codec.Queue), frame.Get(codec.Payload))
	// Output:
	// "\x00REQ\x00\x00\x00\a\x00\x00\x00\rreverse\x00\x00test"
	// SUBMIT_JOB: function reverse, workload test
}

// A Stream finds messages in bytes that arrive in pieces.
func ExampleStream() {
	streams := codec.Streams(gearman.Protocol.NewSession(codec.Options{}))
	var frame codec.Frame
	for _, arrived := range []string{"\x00REQ\x00\x00\x00\x10\x00\x00", "\x00\x04test\x00REQ\x00\x00\x00\x09\x00\x00\x00\x00"} {
		for piece := range streams[codec.Peer].Feed([]byte(arrived), &frame) {
			if piece.Err != nil {
				fmt.Println(piece.Err)
				return
			}
			fmt.Printf("%s, %d bytes\n", frame.Type.Name, len(piece.Raw))
		}
	}
	// Output:
	// ECHO_REQ, 16 bytes
	// GRAB_JOB, 12 bytes
}

// A decoding error names the violated rule and the byte.
func ExampleError() {
	session := gearman.Protocol.NewSession(codec.Options{})
	var frame codec.Frame
	_, err := session.Decode(codec.Peer, []byte("\x00REQ\x00\x00\x00\x17\x00\x00\x00\x06work\x00x"), &frame)
	fmt.Println(err)
	// Output: byte 17, Timeout: expected a decimal number of at most 64 bits, got "x" [gearman.number.decimal]
}
