package resp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// In the following functions, bad is the offset of the first wrong byte, or -1.

// checkInteger accepts a signed decimal number of 64 bits in the format of Redis: no plus sign, no leading
// zeros.
func checkInteger(v []byte) (bad int, detail string) {
	if bad, detail = checkBigNumber(v); bad >= 0 {
		return bad, detail
	}
	const limit = "9223372036854775807"
	digits := bytes.TrimPrefix(v, []byte("-"))
	if len(digits) < len(limit) || len(digits) == len(limit) && string(digits) <= limit ||
		string(v) == "-9223372036854775808" {
		return -1, ""
	}
	return 0, "expected an integer of at most 64 bits, got a larger one"
}

// checkBigNumber accepts a signed decimal number of any length without a plus sign and without leading zeros.
func checkBigNumber(v []byte) (bad int, detail string) {
	first := 0
	if len(v) > 0 && v[0] == '-' {
		first = 1
	}
	for i, c := range v[first:] {
		if c < '0' || c > '9' {
			return first + i, fmt.Sprintf("expected a decimal digit, got %q", v[first+i:first+i+1])
		}
	}
	switch {
	case len(v) == first:
		return 0, "expected a decimal number, got none"
	case v[first] == '0' && len(v) > 1:
		return 0, "expected a number without leading zeros, got a number with leading zeros"
	}
	return -1, ""
}

func checkNull(v []byte) (bad int, detail string) {
	if len(v) > 0 {
		return 0, "expected nothing after the underscore of null, got a value"
	}
	return -1, ""
}

func checkBoolean(v []byte) (bad int, detail string) {
	if len(v) == 1 && (v[0] == 't' || v[0] == 'f') {
		return -1, ""
	}
	return 0, fmt.Sprintf("expected t or f, got %.40q", v)
}

// checkDouble accepts the formats of C's printf: decimals, an exponent, inf and nan.
func checkDouble(v []byte) (bad int, detail string) {
	digits := bytes.TrimPrefix(v, []byte("-"))
	if string(digits) == "inf" || string(digits) == "nan" {
		return -1, ""
	}
	for i, c := range v {
		if strings.IndexByte("0123456789+-.e", c) < 0 {
			return i, fmt.Sprintf("expected a floating-point number, got %q in it", v[i:i+1])
		}
	}
	if _, err := strconv.ParseFloat(string(v), 64); errors.Is(err, strconv.ErrSyntax) {
		return 0, fmt.Sprintf("expected a floating-point number, got %.40q", v)
	}
	return -1, ""
}

// checkVerbatim requires three bytes of format before a colon.
func checkVerbatim(v []byte) (bad int, detail string) {
	if len(v) < 4 || v[3] != ':' {
		return min(len(v), 3), "expected a verbatim string that begins with three bytes of format and a colon, got other bytes"
	}
	return -1, ""
}
