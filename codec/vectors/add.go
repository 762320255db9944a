package vectors

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"jobwire/codec"
	"jobwire/codec/transcript"
)

// Sent has bytes that one end of a connection sent.
type Sent struct {
	Conn string // identifies the connection
	From codec.Side
	Raw  []byte
}

// ParseGoFuzz returns what an input of Go's fuzzer sends: one []byte, which the peer sends, or two, which the peer and
// the server send. ok is false if src is not an input of Go's fuzzer.
func ParseGoFuzz(src []byte) (all []Sent, ok bool, err error) {
	if !bytes.HasPrefix(src, []byte("go test fuzz v1")) {
		return nil, false, nil
	}
	for line := range strings.Lines(string(src)) {
		quoted, ok := strings.CutPrefix(strings.TrimSpace(line), "[]byte(")
		if !ok {
			continue
		}
		text, err := strconv.Unquote(strings.TrimSuffix(quoted, ")"))
		if err != nil {
			return nil, true, fmt.Errorf("[]byte(%s: %w", quoted, err)
		}
		all = append(all, Sent{"", codec.Side(len(all)), []byte(text)})
	}
	if n := len(all); n < 1 || n > 2 {
		return nil, true, fmt.Errorf("expected one []byte (sent by a client or worker) or two (sent by both ends), got %d", n)
	}
	return all, true, nil
}

// Added describes a vector that Add has added.
type Added struct {
	File, Name string
	About      string // "accepted; other fields than in all vectors", or the rule that the message breaks
}

// Add appends a vector to the files of a protocol in dir, the corpus of a working copy, for each message whose shape
// the files lack.
func Add(dir string, p *codec.Protocol, all []Sent) ([]Added, error) {
	have := vectorSet{protocol: p, shapes: map[string]bool{}, names: map[string]bool{}}
	files := map[string]string{}
	for _, kind := range []string{Accepted, Rejected} {
		files[kind] = filepath.Join(dir, p.Name, kind+".wire")
		src, err := os.ReadFile(files[kind])
		if err != nil {
			return nil, err
		}
		scripts, err := transcript.Parse(p, files[kind], src)
		if err != nil {
			return nil, err
		}
		for _, s := range scripts {
			have.know(kind, s)
		}
	}
	var added []Added
	for _, v := range have.vectors(all) {
		out, err := os.OpenFile(files[v.kind], os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return added, err
		}
		_, err = fmt.Fprintf(out, "\n%s", v.text)
		if err = errors.Join(err, out.Close()); err != nil {
			return added, err
		}
		added = append(added, Added{files[v.kind], v.name, v.what})
	}
	return added, nil
}

// AddConversation saves a transcript as a vector of its own. It returns an error if there is another transcript of this
// name.
func AddConversation(dir string, p *codec.Protocol, name string, src []byte) error {
	file := filepath.Join(dir, p.Name, name+".wire")
	if old, err := os.ReadFile(file); err == nil {
		if bytes.Equal(old, src) {
			return nil
		}
		return fmt.Errorf("%s: the file exists and its contents differ: choose another name", file)
	}
	return os.WriteFile(file, src, 0o666)
}
