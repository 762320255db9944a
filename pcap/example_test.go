package pcap_test

import (
	"bytes"
	"fmt"

	"jobwire/codec"
	"jobwire/pcap"
)

// Write a conversation as a capture, and decode the capture.
func Example() {
	var capture bytes.Buffer
	w, err := pcap.NewWriter(&capture, 4730)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range []pcap.Event{
		{Conn: 1, Kind: pcap.Opens},
		{Conn: 1, From: codec.Peer, Data: []byte("\x00REQ\x00\x00\x00\x10\x00\x00\x00\x04test")},
		{Conn: 1, From: codec.Server, Data: []byte("\x00RES\x00\x00\x00\x11\x00\x00\x00\x04test")},
		{Conn: 1, Kind: pcap.Closes},
	} {
		if err := w.Write(e); err != nil {
			fmt.Println(err)
			return
		}
	}

	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}

	file, err := pcap.NewFile("echo.pcap", &capture)
	if err != nil {
		fmt.Println(err)
		return
	}
	decoder := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
		if it.Kind == pcap.Message {
			fmt.Printf("packet %d to the %s: %s %s\n", it.First, it.From.Other(), it.Frame.Type.Name, it.Frame.Arg(0))
		}
	})
	if err := decoder.Decode(file); err != nil {
		fmt.Println(err)
	}
	// Output:
	// packet 4 to the server: ECHO_REQ test
	// packet 6 to the peer: ECHO_RES test
}
