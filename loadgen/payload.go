package loadgen

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
)

// MinPayload is the smallest payload of a job in bytes: its number, and a check of it.
const MinPayload = 16

// payloadContent contains the bytes of payloads after the first MinPayload. Which part of it a job has follows from the job's number, so that
// bytes of one job in another are noticed.
type payloadContent struct {
	twice []byte // the content two times, so that a part may start anywhere
	size  int    // of the content
}

// minContent is the length in bytes up to which content is repeated.
const minContent = 1 << 16

// newFiller returns a filler of the content. Without content, it is random bytes, which cannot be compressed.
func newFiller(content []byte) payloadContent {
	if len(content) == 0 {
		content = make([]byte, minContent)
		rand.NewChaCha8([32]byte{'f'}).Read(content)
	}
	content = bytes.Repeat(content, (minContent+len(content)-1)/len(content))
	return payloadContent{bytes.Repeat(content, 2), len(content)}
}

// mixBits spreads a number over 64 bits.
func mixBits(n uint64) uint64 {
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	n *= 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// appendPayload appends a payload of that size, at least MinPayload, for the job with that number.
func (l *payloadContent) appendPayload(dst []byte, number uint64, size int) []byte {
	dst = binary.BigEndian.AppendUint64(dst, number)
	dst = binary.BigEndian.AppendUint64(dst, mixBits(number))
	for size -= MinPayload; size > 0; {
		at := int(mixBits(number) % uint64(l.size))
		n := min(size, l.size)
		dst = append(dst, l.twice[at:at+n]...)
		size -= n
	}
	return dst
}

// numberOf returns the number of the job that has this payload. ok is false unless
// the filler has made the payload and it is complete and unchanged.
func (l *payloadContent) numberOf(payload []byte) (number uint64, ok bool) {
	if len(payload) < MinPayload {
		return 0, false
	}
	number = binary.BigEndian.Uint64(payload)
	check := mixBits(number)
	if binary.BigEndian.Uint64(payload[8:]) != check {
		return 0, false
	}
	for rest := payload[MinPayload:]; len(rest) > 0; {
		at := int(check % uint64(l.size))
		n := min(len(rest), l.size)
		if !bytes.Equal(rest[:n], l.twice[at:at+n]) {
			return number, false
		}
		rest = rest[n:]
	}
	return number, true
}
