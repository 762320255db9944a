// Package decrypt decrypts captured TLS connections with the secrets in key logs: TLS 1.3, and TLS 1.2 with
// AES-GCM or ChaCha20-Poly1305. The standard library has the ciphers, but can decrypt only connections of which
// it is an end.
package decrypt

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/crypto/cryptobyte"
)

// Sizes and numbers of the protocol (RFC 8446).
const (
	header     = 5            // bytes before the content of a record
	maxContent = 1<<14 + 2048 // bytes of the content
	minContent = 17           // bytes of the shortest encrypted content
	randomSize = 32
	masterSize = 48 // bytes of the master secret of TLS 1.2

	changeCipherSpec, handshake, applicationData = 20, 22, 23 // types of records
	clientHello, serverHello                     = 1, 2       // types of handshake messages

	supportedVersions = 43 // an extension

	// retry is the value of the field random in a ServerHello with which the server asks the client
	// for another ClientHello.
	retry = "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c"
)

// Limits of the search for the next record after a loss.
const (
	maxAhead = 1 << 8 // lost records
	// bytes that failed attempts to decrypt may cost in one direction of a connection: about 1 s of work
	maxFailed = 1 << 30
	attempt   = 1000 // cost of an attempt in bytes, in addition to the size of the record
)

// The directions of a connection.
const (
	FromClient = iota
	FromServer
)

// Why a connection cannot be decrypted.
var (
	ErrNotTLS = errors.New("the beginning of the handshake is missing or invalid")
	ErrKeys   = errors.New("the key log has other keys for this session")
)

// Conn decrypts one TLS connection from its beginning. First pass the bytes of both directions to [Conn.Probe]
// until it returns true. Then pass the same bytes, and all later ones, to [Conn.Decrypt]. If bytes are missing,
// call [Conn.Lose].
type Conn struct {
	keys   *Keys
	client []byte // random of the ClientHello, nil until it has been read
	server []byte // random of the ServerHello, nil until it has been read
	tls13  bool
	suite  *suite
	proved bool // an encrypted record was decrypted
	dirs   [2]direction
}

// direction is the state of one direction of a connection.
type direction struct {
	buf    []byte  // bytes that have not been read: the beginning of a record
	hello  []byte  // the beginning of the hello message
	greets bool    // the hello message has been read
	sealed bool    // a ChangeCipherSpec has been read
	keys   [2]*key // the current key, and the next one or nil; both are nil while secrets are missing
	number uint64  // of the next record with the current key
	lost   int     // number of bytes lost since the last record; if it is not 0, the next record must be found
	failed int     // cost of failed attempts to decrypt
}

// NewConn returns a connection that is decrypted with the given secrets, to which more may be added later.
func NewConn(keys *Keys) *Conn { return &Conn{keys: keys} }

// Probe processes the next bytes of a direction. It returns true when it has decrypted a record, and false
// while the handshake is incomplete or secrets are missing. An error means that the connection cannot be
// decrypted.
func (c *Conn) Probe(dir int, b []byte) (bool, error) {
	ignore := func([]byte, int) {}
	err := c.records(dir, b, ignore)
	if err == nil {
		err = c.records(1-dir, nil, ignore) // the records of the other direction may have waited for this hello message
	}
	if err != nil {
		return false, err
	}
	if c.proved {
		c.dirs = [2]direction{}
		c.derive()
		return true, nil
	}
	return false, nil
}

// Decrypt processes the next bytes of a direction. It calls emit with each piece of decrypted data, which is
// valid only during the call, and with the size of each record that it cannot decrypt although no bytes are
// missing.
func (c *Conn) Decrypt(dir int, b []byte, emit func(plain []byte, failed int)) {
	c.records(dir, b, emit) // records returns errors only before the keys are proved
}

// ClientRandom returns the client random, by which key logs identify the session, or nil if the ClientHello was
// not processed yet.
func (c *Conn) ClientRandom() []byte { return c.client }

// Lose records that n bytes of a direction are missing. Decryption continues with the next complete record.
func (c *Conn) Lose(dir, n int) {
	d := &c.dirs[dir]
	d.lost += n + len(d.buf)
	d.buf = nil
}

// Buffered returns the number of bytes of a direction that wait for the rest of their record.
func (c *Conn) Buffered(dir int) int { return len(c.dirs[dir].buf) }

// records reads the complete records of a direction, after the next bytes.
func (c *Conn) records(dir int, b []byte, emit func([]byte, int)) error {
	d := &c.dirs[dir]
	rest := b
	if len(d.buf) > 0 {
		d.buf = append(d.buf, b...)
		rest = d.buf
	}
	defer func() {
		switch {
		case len(rest) == 0:
			d.buf = nil
		case len(d.buf) > 0:
			d.buf = d.buf[:copy(d.buf, rest)]
		default:
			d.buf = bytes.Clone(rest)
		}
	}()
	for len(rest) >= header {
		kind, size := rest[0], header+int(binary.BigEndian.Uint16(rest[3:]))
		valid := kind >= changeCipherSpec && kind <= applicationData && rest[1] == 3 && size <= header+maxContent
		switch {
		case valid && len(rest) < size:
			return nil
		case valid && d.lost == 0 && kind != applicationData && (c.tls13 || !d.sealed || !d.greets && !c.proved): // not encrypted
			if err := c.clear(dir, kind, rest[header:size]); err != nil {
				return err
			}
			rest = rest[size:]
			continue
		case valid && d.keys[0] == nil:
			c.derive()
			if d.keys[0] == nil {
				return nil
			}
		}
		if valid {
			if content, plain, ok := c.open(d, rest[:size]); ok {
				d.lost, d.sealed, c.proved = 0, true, true
				if content == applicationData && len(plain) > 0 {
					emit(plain, 0)
				}
				rest = rest[size:]
				continue
			}
		}
		switch {
		case d.lost > 0:
			rest = rest[1:]
			d.lost++
		case !c.proved && valid:
			return ErrKeys
		case !c.proved:
			return ErrNotTLS
		default:
			n := min(size, len(rest))
			if !valid {
				n = header
			}
			emit(nil, n)
			rest = rest[n:]
			d.lost = n
		}
	}
	return nil
}

// open decrypts a record of a direction. After a loss, it tries several record numbers.
func (c *Conn) open(d *direction, record []byte) (content byte, plain []byte, ok bool) {
	if len(record) < header+minContent || d.failed > maxFailed {
		return 0, nil, false
	}
	ahead := uint64(0)
	if d.lost > 0 {
		ahead = uint64(min(d.lost/(header+minContent)+1, maxAhead))
	}
	first := d.number
	for i, k := range d.keys {
		if k == nil {
			break
		}
		for n := first; n <= first+ahead; n++ {
			if content, plain, ok = k.open(c.keys.plain[:], record, n); !ok {
				d.failed += attempt + len(record)
				continue
			}
			d.number = n + 1
			if i > 0 {
				d.keys = [2]*key{k, k.updated()}
			}
			return content, plain, true
		}
		first = 0
	}
	return 0, nil, false
}

// clear processes a record that is not encrypted.
func (c *Conn) clear(dir int, kind byte, b []byte) error {
	d := &c.dirs[dir]
	if kind == changeCipherSpec {
		d.sealed = true
	}
	if kind != handshake || d.greets || c.proved {
		return nil
	}
	d.hello = append(d.hello, b...)
	in := cryptobyte.String(d.hello)
	for !d.greets {
		var kind uint8
		var body cryptobyte.String
		if !in.ReadUint8(&kind) || !in.ReadUint24LengthPrefixed(&body) {
			if len(d.hello) > 2*maxContent {
				return ErrNotTLS
			}
			return nil // the rest is in the next record
		}
		if int(kind) != [2]int{clientHello, serverHello}[dir] {
			return ErrNotTLS
		}
		if err := c.greet(d, dir, body); err != nil {
			return err
		}
	}
	d.hello = nil
	return nil
}

// greet processes a hello message.
func (c *Conn) greet(d *direction, dir int, in cryptobyte.String) error {
	var version, number uint16
	var random []byte
	if !in.ReadUint16(&version) || !in.ReadBytes(&random, randomSize) {
		return ErrNotTLS
	}
	d.greets = dir == FromClient || string(random) != retry
	if dir == FromClient {
		c.client = random
		return nil
	}
	if !d.greets {
		return nil
	}
	var id, extensions cryptobyte.String
	if !in.ReadUint8LengthPrefixed(&id) || !in.ReadUint16(&number) || !in.Skip(1) ||
		!in.Empty() && !in.ReadUint16LengthPrefixed(&extensions) {
		return ErrNotTLS
	}
	for !extensions.Empty() {
		var kind uint16
		var body cryptobyte.String
		if !extensions.ReadUint16(&kind) || !extensions.ReadUint16LengthPrefixed(&body) ||
			kind == supportedVersions && !body.ReadUint16(&version) {
			return ErrNotTLS
		}
	}
	s, known := suites[number]
	switch {
	case version != tls.VersionTLS12 && version != tls.VersionTLS13:
		return fmt.Errorf("%s is not supported", tls.VersionName(version))
	case !known:
		return fmt.Errorf("the cipher suite %s is not supported", tls.CipherSuiteName(number))
	}
	c.server, c.tls13, c.suite = random, version == tls.VersionTLS13, &s
	return nil
}

// derive sets the keys of both directions if the secrets of the session are known.
func (c *Conn) derive() {
	if c.client == nil || c.server == nil {
		return
	}
	labels, size := []string{"CLIENT_RANDOM"}, masterSize
	if c.tls13 {
		size = c.suite.hash().Size()
		labels = []string{"CLIENT_HANDSHAKE_TRAFFIC_SECRET", "CLIENT_TRAFFIC_SECRET_0", "SERVER_HANDSHAKE_TRAFFIC_SECRET",
			"SERVER_TRAFFIC_SECRET_0"}
	}
	var secrets [][]byte
	for _, label := range labels {
		s := c.keys.secret(c.client, label, size)
		if s == nil {
			return
		}
		secrets = append(secrets, s)
	}
	for dir := range c.dirs {
		if c.tls13 {
			c.dirs[dir].keys = [2]*key{newKey13(c.suite, secrets[2*dir]), newKey13(c.suite, secrets[2*dir+1])}
		} else {
			c.dirs[dir].keys[0] = newKey12(c.suite, secrets[0], c.client, c.server, dir)
		}
	}
}
