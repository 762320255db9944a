package transcript_test

import (
	"bytes"
	"os"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
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
	f.Add([]byte("Admin -> Job Server\n\"maxque\" (maxqueue)\n75 65 20  ue\\x20\n\"f\\x20\\\"\"*2 (Function, Size)\n\"\\n\"\n"))
	f.Add([]byte("Producer -> Server\n\"put 0 1 60 5\\r\\n\" (put: Priority, Delay, TTR, Bytes)\n\"hello\\r\\n\" (Body)\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if bytes.Contains(src, []byte(`"*`)) && len(src) > 4096 {
			t.Skip("repetitions make it slow, not different")
		}
		for _, p := range []*codec.Protocol{gearman.Protocol, beanstalk.Protocol} {
			scripts, err := Parse(p, "fuzz.wire", src)
			if err != nil {
				continue
			}
			for _, s := range scripts {
				inverse(t, p, s)
			}
		}
	})
}

func inverse(t *testing.T, p *codec.Protocol, s *Script) {
	text := lines(t, s)
	if back := parse(t, p, text); !same(s, back, false) {
		t.Errorf("the lines mean something else:\n%s", text)
	}
	var b bytes.Buffer
	if err := Bytes(&b, s); err != nil {
		return
	}
	back := parse(t, p, b.String())
	var again bytes.Buffer
	if err := Bytes(&again, back); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) || !same(s, back, false) {
		t.Errorf("the bytes mean something else (%v):\n%s", err, b.String())
	}
}
