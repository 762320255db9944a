package loadgen

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Sizes is the distribution of payload sizes in bytes. Sizes are uniformly distributed from Lo to Hi. With Exp, they
// are Lo plus an exponentially distributed number with mean (Hi-Lo)/8, at most Hi.
type Sizes struct {
	Lo, Hi int
	Exp    bool
}

// maxPayload is the highest size of a payload in bytes.
const maxPayload = 64 << 20

// ParseSizes parses a size in bytes ("1024"), a uniform range ("16-4096") or a range with exponential distribution
// ("16-65536:exp"). The suffixes K and M stand for 1024 and 1024*1024 bytes.
func ParseSizes(s string) (Sizes, error) {
	bounds, shape, shaped := strings.Cut(s, ":")
	lo, hi, ranged := strings.Cut(bounds, "-")
	if !ranged {
		hi = lo
	}
	z := Sizes{Exp: shape == "exp"}
	var err error
	if z.Lo, err = parseBytes(lo); err == nil {
		z.Hi, err = parseBytes(hi)
	}
	if err != nil || z.Lo > z.Hi || z.Hi > maxPayload || shaped && !z.Exp {
		return z, fmt.Errorf("%q: expected bytes, as 1024, 16-4096 or 16-64K:exp, at most %d", s, maxPayload)
	}
	return z, nil
}

// parseBytes parses a number of bytes with an optional suffix K or M.
func parseBytes(s string) (int, error) {
	unit := 1
	switch {
	case strings.HasSuffix(s, "K"):
		unit = 1 << 10
	case strings.HasSuffix(s, "M"):
		unit = 1 << 20
	}
	n, err := strconv.ParseUint(strings.TrimRight(s, "KM"), 10, 31)
	return int(n) * unit, err
}

// String returns the distribution in the format of ParseSizes, without suffixes K and M.
func (s Sizes) String() string {
	text := strconv.Itoa(s.Lo)
	if s.Hi > s.Lo {
		text += "-" + strconv.Itoa(s.Hi)
	}
	if s.Exp {
		text += ":exp"
	}
	return text
}

// draw returns a random size in bytes.
func (s Sizes) draw(r *rand.Rand) int {
	switch {
	case s.Hi == s.Lo:
		return s.Lo
	case s.Exp:
		n := s.Lo + int(r.ExpFloat64()*float64(s.Hi-s.Lo)/8)
		return min(n, s.Hi)
	}
	return s.Lo + r.IntN(s.Hi-s.Lo+1)
}
