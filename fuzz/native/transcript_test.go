package native

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/fuzz/laws"
)

// FuzzTranscript checks that parsing is the inverse of printing: if a source is accepted, its lines and its bytes, if they
// can express it, are parsed as the same script.
func FuzzTranscript(f *testing.F) {
	protocols := []*codec.Protocol{gearman.Protocol, beanstalk.Protocol, gearmonkey.Protocol, danga.Protocol}
	err := fs.WalkDir(corpus.FS, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".wire") {
			return err
		}
		src, err := corpus.FS.ReadFile(name)
		for i, p := range protocols {
			if strings.HasPrefix(name, p.Name+"/") {
				for part := range bytes.SplitSeq(src, []byte("\n\n")) {
					f.Add(byte(i), part)
				}
			}
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	for i, src := range []string{
		"Admin -> Job Server\n\"maxque\" (maxqueue)\n75 65 20  ue\\x20\n\"f\\x20\\\"\"*2 (Function, Size)\n\"\\n\"\n",
		"Producer -> Server\n\"put 0 1 60 5\\r\\n\" (put: Priority, Delay, TTR, Bytes)\n\"hello\\r\\n\" (Body)\n",
		"Client -> Server: ZADD_SCHEDULED a $now+2 \"x\\0\"*3\nServer -> Client: integer * within 2s\n  or non-strict nothing for 200ms\n",
		"@0 0\r0\nClient -> Server: raw \"0\"",
		"# comment\n@case one\n@rule a.b\nWorker 2 -> Job Server: opens\nWorker 2 -> Job Server: raw 00 52 \"text\\n\" after 900ms\n\n@case two\nWorker -> Job Server: resets\n",
		"Client -> Job Server: unchecked SUBMIT_JOB a b c d\nJob Server -> Client: JOB_CREATED $handle past NOOP ECHO_RES\nClient -> Job Server: half-closes\n",
	} {
		f.Add(byte(i%len(protocols)), []byte(src))
		f.Add(byte(0), []byte(src))
	}
	f.Fuzz(func(t *testing.T, protocol byte, src []byte) {
		if bytes.Contains(src, []byte(`"*`)) && len(src) > 4096 {
			t.Skip("repetitions make it slow, not different")
		}
		var scripts []*transcript.Script
		var err error
		read := func() { scripts, err = transcript.Parse(protocols[int(protocol)%len(protocols)], "fuzz.wire", src) }
		if over := Bounded(len(src), 96<<20, 64<<10, read); over != nil {
			t.Fatal(over)
		}
		if err != nil {
			return
		}
		for _, s := range scripts {
			if expanded(s) > 1<<20 {
				t.Skip("a listing of so much takes longer than the fuzzer waits")
			}
			if _, err := laws.Inverse(s); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// expanded returns the number of bytes of all values of a script, with repetitions such as "x"*1000 expanded.
func expanded(s *transcript.Script) (n int) {
	for i := range s.Steps {
		for _, c := range s.Steps[i].Choices {
			n += len(c.Bytes)
			for _, a := range c.Args {
				n += len(a.Value)
			}
		}
	}
	return n
}
