package gen

import (
	"math/rand/v2"
	"strconv"

	"jobwire/codec"
)

// Lengths are common sizes of buffers and maximum lengths, in bytes, and lengths near them. The first ShortLengths of
// them are common limits of names.
var Lengths = []int{0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 65, 127, 128, 129, 200, 201, 224, 255, 256, 257, 511, 512,
	1000, 1023, 1024, 1025, 2047, 2048, 4095, 4096, 4097, 8000, 8191, 8192, 8193, 16384, 32768, 65535, 65536, 65537}

// ShortLengths is the number of lengths up to 257.
const ShortLengths = 22

// length returns a random one of Lengths, up to most.
func length(r *rand.Rand, most int) int { return min(most, Lengths[r.IntN(len(Lengths))]) }

// widths contains the sizes of integer types, in bits without the sign where it matters, and of common limits.
var widths = []int{0, 6, 7, 8, 15, 16, 20, 31, 32, 63, 64}

// limit returns a number at the limit of an integer type, or next to one.
func limit(r *rand.Rand) uint64 {
	return uint64(1)<<widths[r.IntN(len(widths))] + uint64(r.IntN(3)) - 1
}

// Boundary returns a number near a limit of the field or of an integer type, at most one beyond the limit of the field.
func Boundary(r *rand.Rand, f *codec.Field) []byte {
	n := limit(r)
	switch r.IntN(6) {
	case 0:
		n = uint64(r.IntN(3)) - 1
	case 1:
		n = f.Lo
	case 2:
		n = f.Hi - uint64(r.IntN(2))
	}
	if f.Kind == codec.Uint {
		return BigEndian(f.Width, n)
	}
	if f.Hi > 0 && n > f.Hi+1 {
		n = f.Hi
	}
	if f.Kind == codec.Signed {
		return strconv.AppendInt(nil, int64(n), 10)
	}
	return strconv.AppendUint(nil, n, 10)
}
