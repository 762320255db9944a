// Package reduce makes inputs smaller while a condition holds, such as the failure that they cause.
package reduce

import (
	"bytes"
	"slices"
)

// List removes parts of a list as long as holds returns true for the rest: first halves, then smaller parts, and
// finally single elements (delta debugging). It returns the smallest list that it found, which has at least one
// element. It ends early if stop returns true. holds is called with new lists, which it may keep.
func List[E any](list []E, stop func() bool, holds func([]E) bool) []E {
	for n := (len(list) + 1) / 2; n > 0 && len(list) > 1 && !stop(); {
		smaller := false
		for at := len(list) - n; at > -n && !stop(); at -= n {
			from := max(0, at)
			if less := slices.Delete(slices.Clone(list), from, min(at+n, len(list))); len(less) > 0 && holds(less) {
				list, smaller = less, true
				at = min(at, len(list))
			}
		}
		if n == 1 && !smaller {
			break
		}
		n = max(1, n/2)
	}
	return list
}

// Pairs removes pairs of elements of a list, for example a request and its reply, as long as holds returns true for the
// rest. It calls holds about n²/2 times for n elements. It returns the smallest list that it found.
func Pairs[E any](list []E, stop func() bool, holds func([]E) bool) []E {
	for a := len(list) - 2; a >= 0; a-- {
		for b := len(list) - 1; b > a && len(list) > 2 && !stop(); b-- {
			if less := slices.Delete(slices.Delete(slices.Clone(list), b, b+1), a, a+1); holds(less) {
				list = less
				break
			}
		}
	}
	return list
}

// Bytes makes a value shorter and simpler as long as holds returns true: an empty value, one letter, the value without
// its beginning or end, and a value of letters x only. It returns the simplest value that it found. It does not remove
// parts from the middle.
func Bytes(b []byte, stop func() bool, holds func([]byte) bool) []byte {
	for _, simple := range []string{"", "a", "x"} {
		if string(b) == simple || len(b) == 1 && simple != "" {
			return b
		}
		if holds([]byte(simple)) {
			return []byte(simple)
		}
	}
	for n := len(b) / 2; n > 0 && !stop(); n /= 2 {
		for len(b) > n {
			if end := len(b) - n; holds(b[:end:end]) {
				b = b[:end:end]
			} else if holds(b[n:]) {
				b = b[n:]
			} else {
				break
			}
		}
	}
	if plain := bytes.Repeat([]byte("x"), len(b)); !bytes.Equal(plain, b) && holds(plain) {
		b = plain
	}
	return b
}
