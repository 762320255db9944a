package transcript_test

import (
	"bytes"
	"os"
	"testing"

	"jobwire/codec/gearman"
	. "jobwire/codec/transcript"
)

// FuzzParse holds printing and parsing to be inverse: whatever source is
// accepted, its lines and, where it has any, its bytes mean the same script.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/example.wire", "testdata/suite.wire"} {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
		for part := range bytes.SplitSeq(src, []byte("\n\n")) {
			f.Add(part)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if bytes.Contains(src, []byte(`"*`)) && len(src) > 4096 {
			t.Skip("repetitions make it slow, not different")
		}
		scripts, err := Parse(gearman.Protocol, "fuzz.wire", src)
		if err != nil {
			return
		}
		for _, s := range scripts {
			text := lines(t, s)
			if back := parse(t, gearman.Protocol, text); !same(s, back, false) {
				t.Errorf("the lines mean something else:\n%s", text)
			}
			var b bytes.Buffer
			if err := Bytes(&b, s); err != nil {
				continue
			}
			back := parse(t, gearman.Protocol, b.String())
			var again bytes.Buffer
			if err := Bytes(&again, back); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) || !same(s, back, false) {
				t.Errorf("the bytes mean something else (%v):\n%s", err, b.String())
			}
		}
	})
}
