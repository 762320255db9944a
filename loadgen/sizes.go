package loadgen

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Sizes is how large payloads are, in bytes: from Lo to Hi, evenly spread, or more of the
// small ones, as an exponential distribution has it.
type Sizes struct {
	Lo, Hi int
	Exp    bool
}

// ParseSizes reads "1024", "16-4096" or "16-65536:exp". K and M stand for 1024 and its square.
func ParseSizes(s string) (Sizes, error) {
	bounds, shape, shaped := strings.Cut(s, ":")
	lo, hi, ranged := strings.Cut(bounds, "-")
	if !ranged {
		hi = lo
	}
	z := Sizes{Exp: shape == "exp"}
	var err error
	if z.Lo, err = bytesOf(lo); err == nil {
		z.Hi, err = bytesOf(hi)
	}
	if err != nil || z.Lo > z.Hi || shaped && !z.Exp {
		return z, fmt.Errorf("%q: expected bytes, as 1024, 16-4096 or 16-64K:exp", s)
	}
	return z, nil
}

func bytesOf(s string) (int, error) {
	unit := 1
	switch {
	case strings.HasSuffix(s, "K"):
		unit = 1 << 10
	case strings.HasSuffix(s, "M"):
		unit = 1 << 20
	}
	n, err := strconv.ParseUint(strings.TrimRight(s, "KM"), 10, 24)
	return int(n) * unit, err
}

func (z Sizes) String() string {
	s := strconv.Itoa(z.Lo)
	if z.Hi > z.Lo {
		s += "-" + strconv.Itoa(z.Hi)
	}
	if z.Exp {
		s += ":exp"
	}
	return s
}

// draw returns a size.
func (z Sizes) draw(r *rand.Rand) int {
	switch {
	case z.Hi == z.Lo:
		return z.Lo
	case z.Exp:
		n := z.Lo + int(r.ExpFloat64()*float64(z.Hi-z.Lo)/8)
		return min(n, z.Hi)
	}
	return z.Lo + r.IntN(z.Hi-z.Lo+1)
}
