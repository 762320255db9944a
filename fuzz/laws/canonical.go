package laws

import (
	"bytes"
	"slices"

	"jobwire/codec"
)

// canonical appends a message to dst as the encoder writes it: decimal sizes have no leading zeros, and words that
// determine the type have the letter case of the type. Decoded messages do not contain these details, nor the quotes and
// comments around the scalars of a YAML body. Any other difference is a defect. The second result is false if the spans do
// not contain every byte exactly once.
func canonical(dst []byte, f *codec.Frame, written []byte) ([]byte, bool) {
	start, end := len(dst), 0
	yaml := f.Type != nil && slices.ContainsFunc(f.Type.Repeat, func(fd codec.Field) bool { return fd.Scalar })
	for i := range f.Spans {
		s := &f.Spans[i]
		if s.Off < end || s.End < s.Off || s.Next < s.End || s.Next > len(f.Raw) {
			return dst, false
		}
		row := f.Raw[end:s.Next]
		end = s.Next
		at := len(dst) - start
		switch {
		case yaml && s.Field.Kind == codec.Length && at < len(written):
			row = written[at : at+bytes.IndexByte(written[at:], '\n')+1]
		case yaml && s.Field.Kind == codec.Literal && i < len(f.Spans)-1:
			row = []byte(s.Field.Lead)
		case s.Field.Scalar && at < len(written):
			row = scalarRow(f, i, row, written[at:])
		case s.Field.Width > 0 || s.Field.Kind != codec.Length && s.Field.Kind != codec.Code:
		case s.Field.Kind == codec.Length:
			lead := s.Off - (s.Next - len(row))
			digits := row[lead : lead+s.End-s.Off]
			if trimmed := bytes.TrimLeft(digits, "0"); len(trimmed) < len(digits) {
				if len(trimmed) == 0 {
					trimmed = digits[len(digits)-1:]
				}
				dst = append(dst, row[:lead]...)
				dst = append(dst, trimmed...)
				row = row[lead+len(digits):]
			}
		case at+len(row) <= len(written) && bytes.EqualFold(row, written[at:at+len(row)]):
			row = written[at : at+len(row)]
		}
		dst = append(dst, row...)
	}
	return dst, end == len(f.Raw)
}

// scalarRow returns the row at the beginning of written if it has the value of the i-th span, otherwise row.
func scalarRow(f *codec.Frame, i int, row, written []byte) []byte {
	fd := f.Spans[i].Field
	k := bytes.Index(written, []byte(fd.Term))
	if k < len(fd.Lead) {
		return row
	}
	again := codec.Frame{Raw: written, Spans: []codec.Span{{Field: fd, Off: len(fd.Lead), End: k}}}
	if s := &again.Spans[0]; written[s.Off] == '"' || written[s.Off] == '\'' {
		s.Off, s.End = s.Off+1, max(s.Off+1, s.End-1)
	}
	if !bytes.Equal(again.Value(0), f.Value(i)) {
		return row
	}
	if i == len(f.Spans)-1 {
		return written
	}
	return written[:k+len(fd.Term)]
}

// cut splits bytes at positions that next chooses.
func cut(b []byte, next func(n int) int) (pieces [][]byte) {
	for len(b) > 0 {
		n := 1 + next(len(b))
		pieces, b = append(pieces, slices.Clip(b[:n])), b[n:]
	}
	return pieces
}
