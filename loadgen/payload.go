package loadgen

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
)

// MinPayload is the smallest payload of a job in bytes: its number, and a check of it.
const MinPayload = 16

// filler is what payloads beyond MinPayload are made of. Which part of it a job has follows
// from its number, so that bytes of one job in another are noticed.
var filler = func() []byte {
	b := make([]byte, 1<<16)
	r := rand.NewChaCha8([32]byte{'f'})
	r.Read(b)
	return append(b, b...)
}()

const fillerSize = 1 << 16

// mix spreads a number over 64 bits.
func mix(n uint64) uint64 {
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	n *= 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// appendPayload appends a payload of that size, at least MinPayload, for the job with that number.
func appendPayload(dst []byte, number uint64, size int) []byte {
	dst = binary.BigEndian.AppendUint64(dst, number)
	dst = binary.BigEndian.AppendUint64(dst, mix(number))
	for size -= MinPayload; size > 0; {
		at := int(mix(number) % fillerSize)
		n := min(size, fillerSize)
		dst = append(dst, filler[at:at+n]...)
		size -= n
	}
	return dst
}

// numberOf returns the number of the job that has this payload. ok is false if
// it is no payload of ours, whole and unchanged.
func numberOf(payload []byte) (number uint64, ok bool) {
	if len(payload) < MinPayload {
		return 0, false
	}
	number = binary.BigEndian.Uint64(payload)
	check := mix(number)
	if binary.BigEndian.Uint64(payload[8:]) != check {
		return 0, false
	}
	for rest := payload[MinPayload:]; len(rest) > 0; {
		at := int(check % fillerSize)
		n := min(len(rest), fillerSize)
		if !bytes.Equal(rest[:n], filler[at:at+n]) {
			return number, false
		}
		rest = rest[n:]
	}
	return number, true
}
