package export_test

import (
	"bytes"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/codec/transcript"
	"jobwire/corpus"
	"jobwire/export"
	"jobwire/fuzz/gen"
	"jobwire/internal/peers"
	"jobwire/pcap"
)

var protocols = []*codec.Protocol{danga.Protocol, gearman.Protocol, beanstalk.Protocol, gearmonkey.Protocol}

// segment is what one end of a connection sends in one piece.
type segment struct {
	from codec.Side
	data []byte
}

// connection is the traffic of one connection, in the order in which it was sent.
type connection struct {
	name     string
	segments []segment
	valid    bool // random messages of which none is mutated
}

// message is what a decoder says about a message.
type message struct {
	Conn     int
	From     codec.Side
	Type     string
	Rule     string
	Args     string   // names and values
	values   []string // only in messages that tshark decoded: names and values as "jobwire decode --format json" writes them
	Request  int      // only in messages that tshark decoded: frame number of the request, or 0
	request  int      // the index of the request in the list, or -1
	frame    int
	answered int // the number of the frame of the reply, or 0
}

func (m message) String() string {
	return fmt.Sprintf("connection %d, %v: %s %s %s", m.Conn, m.From, m.Type, m.Args, m.Rule)
}

// key returns the name under which an argument is filtered.
func key(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "_") }

// decoded returns the messages that jobwire's own decoder finds.
func decoded(p *codec.Protocol, all []connection) (list []message) {
	for i, c := range all {
		streams := codec.Streams(p.NewSession(codec.Options{MaxData: export.MaxData}))
		var waiting codec.Conversation[int]
		unsure := false // a server has replied to an incomplete request
		for _, s := range c.segments {
			var f codec.Frame
			for piece := range streams[s.from].Feed(s.data, &f) {
				if piece.Found == codec.Skipped {
					continue
				}
				m := message{Conn: i, From: s.from, request: -1}
				typ := f.Type
				if f.Type != nil {
					m.Type = f.Type.Name
				}
				err := piece.Err
				if err != nil {
					pairing := slices.Contains(p.Pairing, err.Rule)
					unsure = unsure || pairing && streams[1-s.from].Inside()
					if unsure && (pairing || s.from == codec.Server && slices.Contains(p.Dependent, err.Rule)) {
						err = nil
					}
				}
				if err != nil {
					m.Rule = string(err.Rule)
					typ = nil
				} else {
					m.Args = arguments(&f)
				}
				if s.from == codec.Server {
					if r, ok := waiting.Reply(typ); ok {
						m.request = r.Value
					}
				} else if r := waiting.Add(typ); r != nil {
					r.Value = len(list)
				}
				list = append(list, m)
			}
		}
	}
	return list
}

func arguments(f *codec.Frame) string {
	var args []string
	for i, s := range f.Spans {
		if s.Field.Derived() {
			continue
		}
		raw := f.Raw[s.Off:s.End]
		v := hex.EncodeToString(raw)
		switch s.Field.Kind {
		case codec.Number, codec.Signed:
			v += " " + canonical(string(raw))
		case codec.Uint:
			var n uint64
			for _, b := range raw {
				n = n<<8 | uint64(b)
			}
			v += " " + strconv.FormatUint(n, 10)
		}
		if s.Field.Scalar && s.Field.Kind == codec.Text {
			v += " " + visible(f.Value(i))
		}
		args = append(args, key(s.Field.Name)+"="+v)
	}
	return strings.Join(args, " ")
}

// canonical removes leading zeros.
func canonical(n string) string {
	sign := ""
	if strings.HasPrefix(n, "-") {
		sign, n = "-", n[1:]
	}
	if n = strings.TrimLeft(n, "0"); n == "" {
		return "0"
	}
	return sign + n
}

// visible returns text of which only the letters and digits of ASCII are kept, because tshark escapes other
// characters.
func visible(v []byte) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, string(v))
}

// escaped matches a control character in tshark's output.
var escaped = regexp.MustCompile(`\\\\x[0-9a-f]{2}|\\x[0-9a-f]{2}`)

// pdml is the output of tshark -T pdml.
type pdml struct {
	Packets []struct {
		Protos []node `xml:"proto"`
	} `xml:"packet"`
}

type node struct {
	Name   string `xml:"name,attr"`
	Show   string `xml:"show,attr"`
	Value  string `xml:"value,attr"`
	Size   int    `xml:"size,attr"`
	Fields []node `xml:"field"`
}

func (n *node) find(name string) *node {
	for i := range n.Fields {
		if n.Fields[i].Name == name {
			return &n.Fields[i]
		}
	}
	return nil
}

// dissect runs tshark with the exported dissector, and returns what it says about each message.
func dissect(t *testing.T, tshark string, p *codec.Protocol, capture string, port int, args ...string) (list []message) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "dissector.lua")
	var out bytes.Buffer
	if err := export.Wireshark(&out, p); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	name := "jobwire." + p.Name
	cmd := exec.CommandContext(t.Context(), tshark, append([]string{"-X", "lua_script:" + script, "-r", capture, "-d", fmt.Sprintf("tcp.port==%d,%s", port, name), "-T", "pdml", "-j", "frame tcp " + name}, args...)...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	got, err := cmd.Output()
	if err != nil || strings.Contains(complaints.String(), "Lua") {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	var file pdml
	if err := xml.Unmarshal(got, &file); err != nil {
		t.Fatal(err)
	}
	for _, packet := range file.Packets {
		stream, number := -1, 0
		for _, pr := range packet.Protos {
			switch pr.Name {
			case "frame":
				number, _ = strconv.Atoi(pr.find("frame.number").Show)
			case "tcp":
				stream, _ = strconv.Atoi(pr.find("tcp.stream").Show)
			case name:
				if pr.find(name+".to") == nil {
					continue // bytes after an illegal message
				}
				list = append(list, shown(t, p, name, &pr, stream, number))
			}
		}
	}
	return list
}

// shown reads one message in tshark's output.
func shown(t *testing.T, p *codec.Protocol, name string, n *node, stream, frame int) message {
	m := message{Conn: stream, frame: frame}
	var args []string
	var typ *codec.Type
	for _, f := range n.Fields {
		short := strings.TrimPrefix(f.Name, name+".")
		switch {
		case f.Name == "_ws.lua.text" && strings.Contains(f.Show, "error"), strings.Contains(f.Show, "Lua Error"):
			t.Errorf("frame %d: %s", frame, f.Show)
		case short == f.Name || f.Name == "":
		case short == "type":
			m.Type = f.Show
			typ = p.TypeNamed(f.Show)
		case short == "type_number":
			if n, _ := strconv.Atoi(f.Show); typ != nil && n != int(typ.Code) {
				t.Errorf("frame %d: %s has the number %d", frame, typ.Name, n)
			}
		case short == "to":
			m.From = codec.Peer
			if f.Show == "client" {
				m.From = codec.Server
			}
		case short == "rule":
			m.Rule = f.Show
		case short == "response_to":
			m.Request, _ = strconv.Atoi(f.Show)
		case short == "response_in":
			m.answered, _ = strconv.Atoi(f.Show)
		case short == "time" || short == "violation":
		default:
			fd := typ.FieldAt(len(args))
			v := f.Value
			if fd == nil {
				t.Errorf("frame %d: unexpected field %s", frame, f.Name)
				continue
			}
			switch fd.Kind {
			case codec.Number, codec.Signed, codec.Uint:
				v += " " + f.Show
			}
			if fd.Scalar && fd.Kind == codec.Text {
				v += " " + visible([]byte(escaped.ReplaceAllString(f.Show, "")))
			}
			if k := key(fd.Name); short == k+"_text" || short == k+"_value" {
				short = k
			}
			args = append(args, short+"="+v)
			m.values = append(m.values, fd.Name+"="+jsonValue(fd, &f))
		}
	}
	if m.Rule == "" {
		m.Args = strings.Join(args, " ")
	}
	return m
}

// jsonValue returns the value that "jobwire decode --format json" writes: a number, text in UTF-8, or other bytes as
// Latin-1. tshark shows the decoded value of a scalar of YAML, but the bytes are those on the wire, so only its
// letters and digits are compared.
func jsonValue(fd *codec.Field, f *node) string {
	raw, _ := hex.DecodeString(f.Value)
	switch {
	case fd.Scalar:
		return visible([]byte(escaped.ReplaceAllString(f.Show, "")))
	case fd.Kind == codec.Uint && len(raw) <= 8:
		return f.Show
	case utf8.Valid(raw):
		return string(raw)
	}
	runes := make([]rune, len(raw))
	for i, b := range raw {
		runes[i] = rune(b)
	}
	return string(runes)
}

// vectors returns the example messages of a protocol, one connection for each vector, and the conversations of its
// specification.
func vectors(t *testing.T, p *codec.Protocol) (all []connection) {
	t.Helper()
	names, err := fs.Glob(corpus.Files(p.Name), "*.wire")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		src, err := fs.ReadFile(corpus.Files(p.Name), name)
		if err != nil {
			t.Fatal(err)
		}
		scripts, err := transcript.Parse(p, name, src)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scripts {
			at := map[transcript.Actor]int{}
			for _, st := range s.Steps {
				if len(st.Choices) == 0 || len(st.Choices[0].Bytes) == 0 {
					continue
				}
				i, ok := at[st.Peer]
				if !ok {
					i = len(all)
					at[st.Peer] = i
					all = append(all, connection{name: name + " " + s.Value("case") + fmt.Sprint(" line ", st.Line)})
				}
				all[i].segments = append(all[i].segments, segment{st.From, st.Choices[0].Bytes})
			}
		}
	}
	return all
}

// plain keeps each message in a segment of its own. coalesced joins the consecutive messages of one end. split sends
// messages in pieces of a few bytes.
func plain(c connection) connection { return c }

func coalesced(c connection) connection {
	out := connection{name: c.name, valid: c.valid}
	for _, s := range c.segments {
		if k := len(out.segments) - 1; k >= 0 && out.segments[k].from == s.from {
			out.segments[k].data = slices.Concat(out.segments[k].data, s.data)
		} else {
			out.segments = append(out.segments, s)
		}
	}
	return out
}

func split(c connection) connection {
	out := connection{name: c.name, valid: c.valid}
	for i, s := range c.segments {
		size := 1 + i%5 + len(s.data)/20
		for part := range slices.Chunk(s.data, size) {
			out.segments = append(out.segments, segment{s.from, part})
		}
	}
	return out
}

// write writes a capture of the connections.
func write(t *testing.T, p *codec.Protocol, all []connection) string {
	t.Helper()
	var file bytes.Buffer
	w, err := pcap.NewWriter(&file, p.DefaultPort)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range all {
		for _, s := range c.segments {
			if err := w.Write(pcap.Event{Conn: i, From: s.from, Kind: pcap.Data, Data: s.data}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "messages.pcap")
	if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// compare reports the differences between two lists of messages.
func compare(t *testing.T, all []connection, got, want []message) {
	t.Helper()
	byConn := map[int][]message{}
	for _, m := range got {
		byConn[m.Conn] = append(byConn[m.Conn], m)
	}
	expected := map[int][]message{}
	for _, m := range want {
		expected[m.Conn] = append(expected[m.Conn], m)
	}
	for i, c := range all {
		for k := range max(len(byConn[i]), len(expected[i])) {
			g, w := "nothing", "nothing"
			if k < len(byConn[i]) {
				g = byConn[i][k].String()
			}
			if k < len(expected[i]) {
				w = expected[i][k].String()
			}
			if g != w {
				t.Errorf("%s, message %d:\ntshark:  %.400s\njobwire: %.400s", c.name, k, g, w)
				break
			}
		}
	}
}

// conversations returns connections with random messages. Replies are legal replies to the requests. If broken is set,
// some messages are mutated.
func conversations(t *testing.T, p *codec.Protocol, seed uint64, broken bool) (all []connection) {
	t.Helper()
	r := gen.New(seed)
	for i := range 8 {
		c := connection{name: fmt.Sprintf("conversation %d, broken=%v", i, broken), valid: !broken}
		s := p.NewSession(codec.Options{})
		var waiting []*codec.Type
		for range 30 {
			from, m := codec.Peer, codec.Message{}
			if k := len(waiting); k > 0 && (r.IntN(3) > 0 || k > 4) {
				from, m = codec.Server, gen.Of(r, waiting[0].Answers[r.IntN(len(waiting[0].Answers))], gen.Options{})
			} else {
				role := codec.Role(1) << r.IntN(len(p.Roles))
				from = codec.Side(r.IntN(8) / 7)
				m = gen.Message(r, p, from, role, gen.Options{})
			}
			if m.Type == nil {
				continue
			}
			raw, err := s.Append(nil, from, &m)
			if err != nil {
				continue
			}
			switch {
			case from == codec.Server && len(waiting) > 0 && slices.Contains(waiting[0].Answers, m.Type):
				waiting = waiting[1:]
			case from == codec.Peer && len(m.Type.Answers) > 0:
				waiting = append(waiting, m.Type)
			}
			if broken && r.IntN(12) == 0 {
				raw = gen.Mutate(r, p, raw, nil)
			}
			if len(raw) > 0 {
				c.segments = append(c.segments, segment{from, raw})
			}
		}
		all = append(all, c)
	}
	return all
}

// links checks the links between the requests and replies of valid connections. Each must be the one that the contract
// gives. If forward is set, requests have links too.
func links(t *testing.T, p *codec.Protocol, sent []connection, got, want []message, forward bool) {
	t.Helper()
	slices.SortStableFunc(got, func(a, b message) int { return a.Conn - b.Conn })
	linked, all := 0, 0
	replies := map[int]int{}
	for i, g := range got {
		if !sent[g.Conn].valid {
			continue
		}
		typ := p.TypeNamed(g.Type)
		pushed := typ != nil && typ.Push // each push that confirms a subscription is linked
		if w := want[i]; w.request >= 0 {
			all++
			if g.Request != 0 && g.Request != got[w.request].frame && !pushed {
				t.Errorf("frame %d, %v: linked with frame %d, want %v in frame %d", g.frame, g, g.Request, want[w.request], got[w.request].frame)
			}
		} else if g.Request != 0 && !pushed {
			t.Errorf("frame %d, %v: linked with frame %d, want no link", g.frame, g, g.Request)
		}
		if g.Request != 0 {
			linked++
			replies[g.Request] = max(replies[g.Request], g.frame)
		}
	}
	answered := 0
	for _, g := range got {
		if g.answered == 0 || !sent[g.Conn].valid {
			continue
		}
		answered++
		if replies[g.frame] < g.answered {
			t.Errorf("frame %d, %v: linked with the reply in frame %d, want %d", g.frame, g, g.answered, replies[g.frame])
		}
	}
	if forward && answered < len(replies) {
		t.Errorf("%d requests are linked with replies, want at least %d", answered, len(replies))
	}
	t.Logf("%d of %d replies are linked", linked, all)
	if linked < all/2 {
		t.Error("too few replies are linked")
	}
}

// TestIncompleteCapture checks that the dissector does not guess if packets are missing: it reports no violation and
// links no reply, but shows the messages.
func TestIncompleteCapture(t *testing.T) {
	t.Parallel()
	tshark := peers.Need(t, "tshark")
	c := connection{segments: []segment{
		{codec.Peer, []byte("watch a\r\n")}, {codec.Server, []byte("WATCHING 2\r\n")},
		{codec.Peer, []byte("peek-ready\r\n")}, {codec.Server, []byte("NOT_FOUND\r\n")}}}
	capture := write(t, beanstalk.Protocol, []connection{c})
	for _, tt := range []struct {
		name    string
		removed string // packets of the capture, in the syntax of editcap
		want    []string
		linked  int
	}{
		{"complete", "", []string{"watch ", "WATCHING ", "peek-ready ", "NOT_FOUND "}, 2},
		{"no beginning", "1-4", []string{" ", "peek-ready ", "NOT_FOUND "}, 0},
		{"no request", "8", []string{"watch ", "WATCHING ", " "}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := capture
			if tt.removed != "" {
				file = filepath.Join(t.TempDir(), "incomplete.pcapng")
				if out, err := exec.CommandContext(t.Context(), peers.Need(t, "editcap"), capture, file, tt.removed).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			var got []string
			linked := 0
			for _, m := range dissect(t, tshark, beanstalk.Protocol, file, beanstalk.Protocol.DefaultPort) {
				got = append(got, m.Type+" "+m.Rule)
				if m.Request != 0 {
					linked++
				}
			}
			if linked != tt.linked {
				t.Errorf("%d replies are linked, want %d", linked, tt.linked)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestTsharkAgrees compares what tshark shows with the exported dissector, and what jobwire's decoder finds, for all
// example messages and for random conversations: types, directions, arguments, violated rules and links. Wireshark
// decodes in two passes when a packet is selected, so the conversations are decoded in one pass and in two.
func TestTsharkAgrees(t *testing.T) {
	t.Parallel()
	tshark := peers.Need(t, "tshark")
	for _, p := range protocols {
		examples := vectors(t, p)
		random := slices.Concat(conversations(t, p, 1, false), conversations(t, p, 1, true))
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			var sent []connection
			for _, c := range examples {
				sent = append(sent, plain(c), coalesced(c), split(c))
			}
			for _, c := range random {
				sent = append(sent, split(c))
			}
			agree(t, tshark, p, sent)
			sent = nil
			for _, c := range random {
				sent = append(sent, plain(c), coalesced(c))
			}
			agree(t, tshark, p, sent, "-2")
		})
	}
}

// agree compares what tshark and jobwire find in a capture of the connections.
func agree(t *testing.T, tshark string, p *codec.Protocol, sent []connection, passes ...string) {
	t.Helper()
	want := decoded(p, sent)
	got := dissect(t, tshark, p, write(t, p, sent), p.DefaultPort, append(passes, "-Y", "jobwire."+p.Name)...)
	compare(t, sent, got, want)
	t.Logf("%d connections, %d messages", len(sent), len(want))
	if !t.Failed() {
		links(t, p, sent, got, want, len(passes) > 0)
	}
}
