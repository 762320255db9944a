package pcap_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gopacket/gopacket/pcapgo"

	"jobwire/codec"
	"jobwire/internal/peers"
	"jobwire/internal/version"
	"jobwire/pcap"
)

// TestPacketsSurviveWriting writes packets of several interfaces and reads them with File: nothing may change.
func TestPacketsSurviveWriting(t *testing.T) {
	want := []pcap.Packet{
		{Number: 1, At: 1_700_000_000_123_456_789, Digits: 9, Link: 1, Data: []byte("first"), Length: 5},
		{Number: 2, At: 1_700_000_000_123_456_000, Digits: 6, Link: 1, Data: []byte("cut"), Length: 1500},
		{Number: 3, At: 1_700_000_001_000_000_000, Digits: 0, Link: 276, Data: []byte{}, Length: 0},
		{Number: 4, At: 1_700_000_002_000_000_001, Digits: 9, Link: 1, Data: []byte("last"), Length: 4},
	}
	var file bytes.Buffer
	w, err := pcap.NewPacketWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if err := w.Write(&want[i], strings.Repeat("ä", i), "\xff"); err != nil {
			t.Fatal(err)
		}
	}
	f, err := pcap.NewFile("written", &file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		var p pcap.Packet
		if err := f.Next(&p); err != nil {
			t.Fatal(err)
		}
		if w := want[i]; p.Number != w.Number || p.At != w.At || p.Digits != w.Digits || p.Link != w.Link || p.Length != w.Length || !bytes.Equal(p.Data, w.Data) {
			t.Errorf("packet %d: %+v, want %+v", i, p, w)
		}
	}
	if err := f.Next(&pcap.Packet{}); !errors.Is(err, io.EOF) {
		t.Errorf("%v at the end", err)
	}
	if err := w.Write(&pcap.Packet{Link: 1 << 16}); err == nil || !strings.Contains(err.Error(), "65536") {
		t.Errorf("a link type of 17 bits: %v", err)
	}
}

// TestSectionNamesJobwire tests that the header of a written pcapng file names jobwire, its version, the hardware and
// the system, and that its times are in nanoseconds. The reader is gopacket.
func TestSectionNamesJobwire(t *testing.T) {
	r, err := pcapgo.NewNgReader(bytes.NewReader(write(t, 4730, pcap.Event{Kind: pcap.Opens})), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	s := r.SectionInfo()
	i, err := r.Interface(0)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.Application, "jobwire "+version.Number) || s.Hardware == "" || s.OS == "" || i.TimestampResolution != 9 {
		t.Errorf("section %+v, interface %+v", s, i)
	}
}

// TestTsharkShowsComments checks which packets have the comments of events.
func TestTsharkShowsComments(t *testing.T) {
	tshark := peers.Need(t, "tshark")
	file := filepath.Join(t.TempDir(), "comments.pcapng")
	long := strings.Repeat("x", 100_000)
	if err := os.WriteFile(file, write(t, 4730,
		pcap.Event{Data: make([]byte, 2000), Comments: []string{"two segments"}},
		pcap.Event{From: codec.Server, Data: []byte("x"), Comments: []string{"[a.rule] MUST", long}},
		pcap.Event{Data: []byte("y")},
		pcap.Event{Kind: pcap.Closes, Comments: []string{"end\xff"}},
		pcap.Event{Conn: 2, Kind: pcap.Opens, Comments: []string{"second"}},
		pcap.Event{Conn: 2, Kind: pcap.Resets, Comments: []string{"reset"}},
	), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", file, "-Y", "frame.comment", "-T", "fields", "-e", "frame.number", "-e", "frame.comment").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"4\ttwo segments", "7\t[a.rule] MUST," + long[:65535/3], "11\tend\ufffd", "15\tsecond", "18\treset"}
	if got := strings.Split(strings.TrimSpace(string(out)), "\n"); !slices.Equal(got, want) {
		t.Errorf("tshark shows %.300q, want %.300q", got, want)
	}
}
