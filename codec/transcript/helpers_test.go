package transcript_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"jobwire/codec"
	"jobwire/codec/gearman"
	. "jobwire/codec/transcript"
	"jobwire/internal/prose"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var shown bytes.Buffer
	if w := (prose.Writer{W: &shown, Colors: true}); bytes.IndexByte(got, 0x1b) >= 0 {
		w.Write(got)
		got = shown.Bytes()
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s (go test -update writes it anew):\n%s", path, got)
	}
}

// parse parses a source that contains one script.
func parse(t *testing.T, p *codec.Protocol, src string) *Script {
	t.Helper()
	scripts, err := Parse(p, "test.wire", []byte(src))
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	if len(scripts) != 1 {
		t.Fatalf("%d scripts, want 1", len(scripts))
	}
	return scripts[0]
}

func lines(t *testing.T, s *Script) string {
	t.Helper()
	var b bytes.Buffer
	if err := Lines(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// choice parses a step in line form and returns its only choice.
func choice(t *testing.T, step string) *Choice {
	t.Helper()
	return &parse(t, gearman.Protocol, step).Steps[0].Choices[0]
}

// toy is a protocol with binary numbers: one byte for the type, one byte for the size, and arguments of fixed
// width. The arguments of the type differ must have different values.
var toy = &codec.Protocol{
	Name: "toy", ServerName: "Server", Roles: []string{"Client"},
	Types: []*codec.Type{
		{Name: "count", Code: 1, Req: 1, Res: 1, Section: "-", Fields: []codec.Field{
			{Name: "Total", Kind: codec.Uint, Width: 4}, {Name: "Flags", Kind: codec.Uint, Width: 1}}},
		{Name: "differ", Code: 2, Index: 1, Req: 1, Section: "-", Fields: []codec.Field{
			{Name: "One", Kind: codec.Uint, Width: 1}, {Name: "Other", Kind: codec.Uint, Width: 1}}},
	},
	NewSession: func(o codec.Options) codec.Session { return toySession{o} },
}

func init() { codec.Link(toy.Types) }

var toyHead = []codec.Field{{Name: "Type", Kind: codec.Code, Width: 1}, {Name: "Size", Kind: codec.Length, Width: 1}}

type toySession struct{ o codec.Options }

func (toySession) Decode(from codec.Side, b []byte, f *codec.Frame) (int, error) {
	f.Reset(from)
	if len(b) < 7 {
		return 7, codec.ErrShort
	}
	t := toy.Types[0]
	f.Type, f.Raw, f.Head = t, b[:7], 2
	for i, fd := range []*codec.Field{&toyHead[0], &toyHead[1], &t.Fields[0], &t.Fields[1]} {
		at, end := [...]int{0, 1, 2, 6}[i], [...]int{1, 2, 6, 7}[i]
		f.Spans = append(f.Spans, codec.Span{Field: fd, Off: at, End: end, Next: end})
	}
	return 7, nil
}

func (s toySession) Append(dst []byte, _ codec.Side, m *codec.Message) ([]byte, error) {
	dst = append(dst, 1, 5)
	for i, a := range m.Args {
		if len(a) != m.Type.Fields[i].Width && !s.o.WaiveAll {
			return nil, &codec.Error{Rule: "toy.width", Field: m.Type.Fields[i].Name, Detail: fmt.Sprintf("%d bytes", len(a))}
		}
		dst = append(dst, a...)
	}
	if m.Type.Code == 2 && bytes.Equal(m.Args[0], m.Args[1]) {
		return nil, &codec.Error{Rule: "toy.differ", Field: "Other", Detail: "both are the same"}
	}
	return dst, nil
}

func be32(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
