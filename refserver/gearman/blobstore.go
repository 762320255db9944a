package gearman

import "math/bits"

// text refers to a byte string in a [blobStore].
type text struct {
	at   id
	size uint32
}

// blobStore stores byte strings of any size. Strings of similar size share pages, so that the memory of removed strings
// is reused; strings longer than largest are allocated individually.
type blobStore struct {
	classes [classes]pages[byte]
	large   pool[[]byte, [0]link]
}

// Each size class is a third or a half larger than the one before: 16, 24, 32, 48 and so on bytes. A page has at most
// 64 KiB.
const (
	smallest = 16
	classes  = 19
	largest  = 8192
	textPage = 64 << 10
)

// newBlobStore returns an empty store whose size classes have the units 16, 24, 32, 48 and so on bytes.
func newBlobStore() (t blobStore) {
	for i := range t.classes {
		unit := smallest << (i / 2)
		unit += unit / 2 * (i % 2)
		t.classes[i] = newPages[byte](unit, min(maxShift, uint(bits.Len(uint(textPage/unit))-1)))
	}
	t.large = newPool[[]byte, [0]link]()
	return t
}

// class returns the index of the smallest class for a size from 1 to largest.
func class(size uint32) int {
	if size <= smallest {
		return 0
	}
	n := bits.Len32(size - 1) // 1<<(n-1) < size <= 1<<n
	i := (n - 4) * 2
	if size <= 3<<(n-2) {
		i--
	}
	return i
}

// add stores the concatenation of the parts.
func (bs *blobStore) add(parts ...[]byte) text {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	s := text{size: uint32(size)}
	var b []byte
	switch {
	case size == 0:
		return s
	case size <= largest:
		c := &bs.classes[class(s.size)]
		s.at = c.add()
		b = c.at(s.at)
	default:
		var l *[]byte
		s.at, l = bs.large.add()
		b = make([]byte, size)
		*l = b
	}
	for _, p := range parts {
		b = b[copy(b, p):]
	}
	return s
}

// bytes returns a string; it is valid until it is removed.
func (bs *blobStore) bytes(s text) []byte {
	switch {
	case s.size == 0:
		return nil
	case s.size <= largest:
		return bs.classes[class(s.size)].at(s.at)[:s.size:s.size]
	}
	return *bs.large.at(s.at)
}

// remove frees the memory of a byte string. The caller must not use s afterwards.
func (bs *blobStore) remove(s text) {
	switch {
	case s.size == 0:
	case s.size <= largest:
		bs.classes[class(s.size)].remove(s.at)
	default:
		bs.large.remove(s.at)
	}
}
