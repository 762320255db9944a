// Command relay forwards the bytes of connections and checks nothing. Its CPU time, compared with that of "jobwire
// audit", shows what the checks cost.
//
//	relay LISTEN SERVER
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
)

// main relays connections until it fails. Its exit status is 2 if an address is missing, otherwise 1.
func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: relay LISTEN SERVER, two addresses HOST:PORT")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, "relay:", relay(os.Args[1], os.Args[2]))
	os.Exit(1)
}

// relay forwards connections until it fails.
func relay(listen, server string) error {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	for {
		near, err := ln.Accept()
		if err != nil {
			return err
		}
		far, err := net.Dial("tcp", server)
		if err != nil {
			return err
		}
		go func() {
			defer near.Close()
			defer far.Close()
			var both sync.WaitGroup
			both.Go(func() { pass(near, far) })
			both.Go(func() { pass(far, near) })
			both.Wait()
		}()
	}
}

// pass copies bytes until src ends, and then closes the sending direction of dst.
func pass(dst, src net.Conn) {
	io.Copy(dst, src)
	dst.(*net.TCPConn).CloseWrite()
}
