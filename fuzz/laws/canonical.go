package laws

import (
	"bytes"
	"slices"

	"jobwire/codec"
)

// canonical appends the bytes of a decoded message to dst in the form in which the encoder writes them. Three
// properties of the original bytes may differ, because decoded messages do not contain them: leading zeros of decimal
// sizes, the letter case of words that determine the type, and the quotes and comments around the scalars of a YAML
// body. written is the output of the encoder. The second result is false if the spans do not contain every byte exactly
// once.
func canonical(dst []byte, f *codec.Frame, written []byte) ([]byte, bool) {
	start, end := len(dst), 0
	yaml := f.Type != nil && slices.ContainsFunc(f.Type.Repeat, func(fd codec.Field) bool { return fd.Scalar })
	for i := range f.Spans {
		s := &f.Spans[i]
		if s.Off < end || s.End < s.Off || s.Next < s.End || s.Next > len(f.Raw) {
			return dst, false
		}
		spanBytes := f.Raw[end:s.Next]
		end = s.Next
		at := len(dst) - start
		switch {
		case yaml && s.Field.Kind == codec.Length && at < len(written):
			spanBytes = written[at : at+bytes.IndexByte(written[at:], '\n')+1]
		case yaml && s.Field.Kind == codec.Literal && i < len(f.Spans)-1:
			spanBytes = []byte(s.Field.Prefix)
		case s.Field.Scalar && at < len(written):
			spanBytes = scalarBytes(f, i, spanBytes, written[at:])
		case s.Field.Width > 0 || s.Field.Kind != codec.Length && s.Field.Kind != codec.Code:
		case s.Field.Kind == codec.Length:
			lead := s.Off - (s.Next - len(spanBytes))
			digits := spanBytes[lead : lead+s.End-s.Off]
			if trimmed := bytes.TrimLeft(digits, "0"); len(trimmed) < len(digits) {
				if len(trimmed) == 0 {
					trimmed = digits[len(digits)-1:]
				}
				dst = append(dst, spanBytes[:lead]...)
				dst = append(dst, trimmed...)
				spanBytes = spanBytes[lead+len(digits):]
			}
		case at+len(spanBytes) <= len(written) && bytes.EqualFold(spanBytes, written[at:at+len(spanBytes)]):
			spanBytes = written[at : at+len(spanBytes)]
		}
		dst = append(dst, spanBytes...)
	}
	return dst, end == len(f.Raw)
}

// scalarBytes returns the line at the beginning of written if it contains the same value as span i, and otherwise
// spanBytes.
func scalarBytes(f *codec.Frame, i int, spanBytes, written []byte) []byte {
	fd := f.Spans[i].Field
	k := bytes.Index(written, []byte(fd.Term))
	if k < len(fd.Prefix) {
		return spanBytes
	}
	again := codec.Frame{Raw: written, Spans: []codec.Span{{Field: fd, Off: len(fd.Prefix), End: k}}}
	if s := &again.Spans[0]; written[s.Off] == '"' || written[s.Off] == '\'' {
		s.Off, s.End = s.Off+1, max(s.Off+1, s.End-1)
	}
	if !bytes.Equal(again.Value(0), f.Value(i)) {
		return spanBytes
	}
	if i == len(f.Spans)-1 {
		return written
	}
	return written[:k+len(fd.Term)]
}

// cut splits bytes into pieces. The length of each piece is next(n)+1, where n is the number of remaining bytes.
func cut(b []byte, next func(n int) int) (pieces [][]byte) {
	for len(b) > 0 {
		n := 1 + next(len(b))
		pieces, b = append(pieces, slices.Clip(b[:n])), b[n:]
	}
	return pieces
}
