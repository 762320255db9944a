package export

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Conversation is what a client or worker sends on one connection.
type Conversation struct {
	Name     string
	Messages [][]byte
}

// Raw returns the bytes of all messages: an input for fuzzers whose harness reads a connection from a file.
func (c *Conversation) Raw() []byte { return slices.Concat(c.Messages...) }

// AFLNet returns the messages in the format of aflnet-replay: before each message, its length as 4 bytes in
// little-endian order.
func (c *Conversation) AFLNet() []byte {
	var b []byte
	for _, m := range c.Messages {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(m))), m...)
	}
	return b
}

// Distinct returns the first of all conversations with the same bytes, without those that are empty. Their names become
// file names that differ in more than letter case.
func Distinct(all []Conversation) (distinct []Conversation) {
	sent, used := map[string]bool{"": true}, map[string]bool{}
	for _, c := range all {
		raw := string(c.Raw())
		if sent[raw] {
			continue
		}
		sent[raw] = true
		base := special.ReplaceAllString(c.Name, "-")
		c.Name = base
		for n := 2; used[strings.ToLower(c.Name)]; n++ {
			c.Name = fmt.Sprintf("%s-%d", base, n)
		}
		used[strings.ToLower(c.Name)] = true
		distinct = append(distinct, c)
	}
	return distinct
}

// special matches characters that may be special in paths or shells.
var special = regexp.MustCompile("[^A-Za-z0-9_-]")
