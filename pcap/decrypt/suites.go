package decrypt

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"
)

// suite is the symmetric part of a cipher suite.
type suite struct {
	key  int // bytes of the key
	salt int // bytes of the nonce that are not in the records of TLS 1.2
	hash func() hash.Hash
	aead func(key []byte) (cipher.AEAD, error)
}

var (
	aes128 = suite{16, 4, sha256.New, newGCM}
	aes256 = suite{32, 4, sha512.New384, newGCM}
	chacha = suite{32, 12, sha256.New, chacha20poly1305.New}
)

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// suites are the supported cipher suites, by their numbers: those of TLS 1.3 and, for TLS 1.2, those with AES-GCM or
// ChaCha20-Poly1305, whatever the key exchange is.
var suites = map[uint16]suite{
	0x1301: aes128, 0x1302: aes256, 0x1303: chacha,

	0x009c: aes128, 0x009e: aes128, 0xc02b: aes128, 0xc02f: aes128, 0x00a8: aes128, 0x00aa: aes128, 0x00ac: aes128,
	0xd001: aes128,
	0x009d: aes256, 0x009f: aes256, 0xc02c: aes256, 0xc030: aes256, 0x00a9: aes256, 0x00ab: aes256, 0x00ad: aes256,
	0xd002: aes256,
	0xcca8: chacha, 0xcca9: chacha, 0xccaa: chacha, 0xccab: chacha, 0xccac: chacha, 0xccad: chacha, 0xccae: chacha,
}

// key decrypts the records of one direction, until the next key takes its place.
type key struct {
	suite  *suite
	secret []byte // of TLS 1.3: traffic secret, from which the next key is derived
	aead   cipher.AEAD
	iv     []byte
}

// newKey12 returns the key of a direction in TLS 1.2 (RFC 5246, section 6.3).
func newKey12(s *suite, master, clientRandom, serverRandom []byte, dir int) *key {
	n := 2*s.key + 2*s.salt
	seed := append(append([]byte("key expansion"), serverRandom...), clientRandom...)
	sum := func(parts ...[]byte) []byte {
		h := hmac.New(s.hash, master)
		for _, p := range parts {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	var block []byte
	for a := sum(seed); len(block) < n; a = sum(a) {
		block = append(block, sum(a, seed)...)
	}
	ivs := block[2*s.key:]
	return &key{suite: s, aead: s.cipher(block[dir*s.key:][:s.key]), iv: ivs[dir*s.salt:][:s.salt]}
}

// newKey13 returns the key of a traffic secret of TLS 1.3 (RFC 8446, section 7.3).
func newKey13(s *suite, secret []byte) *key {
	return &key{suite: s, secret: secret, aead: s.cipher(s.expand(secret, "key", s.key)),
		iv: s.expand(secret, "iv", chacha20poly1305.NonceSize)}
}

// updated returns the key after a KeyUpdate of TLS 1.3.
func (k *key) updated() *key {
	return newKey13(k.suite, k.suite.expand(k.secret, "traffic upd", len(k.secret)))
}

// expand is HKDF-Expand-Label with an empty context.
func (s *suite) expand(secret []byte, label string, n int) []byte {
	label = "tls13 " + label
	info := append([]byte{byte(n >> 8), byte(n), byte(len(label))}, label...)
	b, err := hkdf.Expand(s.hash, secret, string(append(info, 0)), n)
	if err != nil {
		panic(err) // only for sizes that TLS does not have
	}
	return b
}

// cipher returns the cipher with a key of the right size.
func (s *suite) cipher(key []byte) cipher.AEAD {
	a, err := s.aead(key)
	if err != nil {
		panic(err)
	}
	return a
}

// open decrypts a record into the memory of dst, and returns the type of its content. ok is false if the record is not
// one of this key with this number.
func (k *key) open(dst, record []byte, number uint64) (content byte, plain []byte, ok bool) {
	head, b := record[:header], record[header:]
	var nonce [chacha20poly1305.NonceSize]byte
	copy(nonce[:], k.iv)
	if explicit := len(nonce) - len(k.iv); explicit > 0 { // AES-GCM of TLS 1.2 has a part of the nonce in the record
		if len(b) < explicit {
			return 0, nil, false
		}
		copy(nonce[len(k.iv):], b)
		b = b[explicit:]
	} else {
		for i := range 8 {
			nonce[len(nonce)-1-i] ^= byte(number >> (8 * i))
		}
	}
	extra := head
	if k.secret == nil { // TLS 1.2
		extra = binary.BigEndian.AppendUint64(make([]byte, 0, 13), number)
		extra = append(extra, head[:3]...)
		extra = binary.BigEndian.AppendUint16(extra, uint16(len(b)-k.aead.Overhead()))
	}
	plain, err := k.aead.Open(dst[:0], nonce[:], b, extra)
	if err != nil {
		return 0, nil, false
	}
	if k.secret == nil {
		return head[0], plain, true
	}
	// In TLS 1.3, the type is the last byte before the padding.
	plain = bytes.TrimRight(plain, "\x00")
	if len(plain) == 0 {
		return 0, nil, false
	}
	return plain[len(plain)-1], plain[:len(plain)-1], true
}
