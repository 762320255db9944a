package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// message is a message that an end sends, on the connection of a client or of a worker.
type message struct {
	worker bool
	from   int
	data   []byte
}

// traffic describes the messages of a protocol.
type traffic struct {
	port     uint16
	register []byte                              // the first message of a worker, or nil
	cycle    func(n int, r *rand.Rand) []message // the messages for one job
}

var protocols = map[string]traffic{
	"gearman":    {4730, packet(peer, 1, "reverse"), gearman},
	"beanstalk":  {11300, nil, beanstalk},
	"gearmonkey": {6379, nil, gearmonkey},
}

// workload returns 40 to 140 letters.
func workload(r *rand.Rand) string {
	b := make([]byte, 40+r.IntN(100))
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyz     ."[r.IntN(32)]
	}
	return string(b)
}

// packet encodes arguments as a Gearman packet.
func packet(from int, code uint32, args ...string) []byte {
	data := strings.Join(args, "\x00")
	b := []byte{0, 'R', 'E', "QS"[from]}
	return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, code), uint32(len(data))), data...)
}

// gearman returns the messages of the n-th Gearman job: submission, assignment and result.
func gearman(n int, r *rand.Rand) []message {
	handle, unique, in, out := fmt.Sprintf("H:lap:%d", n+1), fmt.Sprintf("%08x", n), workload(r), workload(r)
	return []message{
		{false, peer, packet(peer, 7, "reverse", unique, in)},
		{false, server, packet(server, 8, handle)},
		{true, peer, packet(peer, 30)},
		{true, server, packet(server, 31, handle, "reverse", unique, in)},
		{true, peer, packet(peer, 13, handle, out)},
		{false, server, packet(server, 13, handle, out)},
	}
}

// beanstalk returns the messages of the n-th Beanstalk job: put, reserve and delete.
func beanstalk(n int, r *rand.Rand) []message {
	body := workload(r)
	return []message{
		{false, peer, fmt.Appendf(nil, "put 100 0 60 %d\r\n%s\r\n", len(body), body)},
		{false, server, fmt.Appendf(nil, "INSERTED %d\r\n", n+1)},
		{true, peer, []byte("reserve\r\n")},
		{true, server, fmt.Appendf(nil, "RESERVED %d %d\r\n%s\r\n", n+1, len(body), body)},
		{true, peer, fmt.Appendf(nil, "delete %d\r\n", n+1)},
		{true, server, []byte("DELETED\r\n")},
	}
}

// command encodes words as a Redis command.
func command(words ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// gearmonkey returns the messages of the n-th GearMonkey job: the Redis commands of the client that creates it and of
// the worker that completes it.
func gearmonkey(n int, r *rand.Rand) []message {
	id := fmt.Sprint(n + 1)
	job := "job:reverse:" + id
	return []message{
		{false, peer, command("INCR", "uid:reverse")},
		{false, server, []byte(":" + id + "\r\n")},
		{false, peer, command("HMSET", job, "status", "idle", "input", workload(r))},
		{false, server, []byte("+OK\r\n")},
		{false, peer, command("LPUSH", "queue:reverse:normal", id)},
		{false, server, []byte(":1\r\n")},
		{true, peer, command("BRPOP", "queue:reverse:high", "queue:reverse:normal", "60")},
		{true, server, command("queue:reverse:normal", id)},
		{true, peer, command("HMSET", job, "status", "complete", "output", workload(r))},
		{true, server, []byte("+OK\r\n")},
	}
}
