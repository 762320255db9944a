package decrypt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"jobwire/internal/textfile"
)

// maxSessions limits the number of TLS sessions whose secrets are kept, in about 50 MB. The secrets of further sessions
// are ignored.
const maxSessions = 1 << 17

// Keys are the secrets of TLS sessions, from key logs: the text format of the environment variable SSLKEYLOGFILE, as
// browsers, curl and tshark use it. The zero value has no secrets.
type Keys struct {
	log      io.Reader                    // may grow; nil: there is none
	part     []byte                       // the beginning of a line of log
	sessions map[string]map[string][]byte // by client random, by label
	plain    [maxContent]byte             // memory for a decrypted record
}

// NewKeys returns the secrets of a key log. Programs may still append to the log: if a secret is missing, Keys
// reads the new lines. NewKeys returns an error if the log cannot be read, or if it has lines but no secrets.
func NewKeys(log io.Reader) (*Keys, error) {
	k := new(Keys)
	if log != nil {
		k.log = textfile.NewReader(log, "a TLS key log")
	}
	ignored, err := k.readOn()
	if err == nil && ignored > 0 && len(k.sessions) == 0 {
		err = errors.New("expected a TLS key log with lines LABEL CLIENT_RANDOM SECRET")
	}
	return k, err
}

// Empty reports whether there is no key log and no secret.
func (k *Keys) Empty() bool { return k.log == nil && len(k.sessions) == 0 }

// Add adds the secrets of a key log. It ignores lines that have another format, and returns their number.
func (k *Keys) Add(log []byte) (ignored int) {
	for line := range bytes.Lines(log) {
		f := strings.Fields(string(line))
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		var random, secret []byte
		err := hex.ErrLength
		if len(f) == 3 {
			random, err = hex.DecodeString(f[1])
			secret, _ = hex.DecodeString(f[2]) // the last line may be incomplete
		}
		if err != nil || len(random) != randomSize || len(secret) == 0 {
			ignored++
			continue
		}
		s := k.sessions[string(random)]
		if s == nil {
			if len(k.sessions) == maxSessions {
				continue
			}
			if k.sessions == nil {
				k.sessions = map[string]map[string][]byte{}
			}
			s = map[string][]byte{}
			k.sessions[string(random)] = s
		}
		s[f[0]] = secret
	}
	return ignored
}

// Select returns the lines of a key log about the sessions with the given client randoms.
func Select(log []byte, randoms map[string]bool) []byte {
	var kept []byte
	for line := range bytes.Lines(log) {
		f := strings.Fields(string(line))
		if len(f) != 3 {
			continue
		}
		if random, err := hex.DecodeString(f[1]); err == nil && randoms[string(random)] {
			kept = append(kept, strings.Join(f, " ")+"\n"...)
		}
	}
	return kept
}

// secret returns a secret of the session with the given client random, or nil. A secret of another size is incomplete.
func (k *Keys) secret(random []byte, label string, size int) []byte {
	s := k.sessions[string(random)][label]
	if len(s) != size {
		k.readOn()
		s = k.sessions[string(random)][label]
	}
	if len(s) != size {
		return nil
	}
	return s
}

// readOn reads what was appended to the log, and returns the number of lines that have another format.
func (k *Keys) readOn() (int, error) {
	if k.log == nil {
		return 0, nil
	}
	b, err := io.ReadAll(k.log)
	if len(b) == 0 {
		return 0, err
	}
	all := append(k.part, b...)
	ignored := k.Add(all) // an incomplete last line yields an incomplete secret, which the complete line replaces later
	k.part = bytes.Clone(all[bytes.LastIndexByte(all, '\n')+1:])
	return ignored, err
}
