package transport

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"jobwire/internal/textfile"
)

// Files are the files with certificates in PEM format of one side. An empty name means no file.
type Files struct {
	CA        string // certificates of the authorities that sign the certificate of the other side
	Cert, Key string // the own certificate and its key
}

// Client returns the configuration of a client that trusts CA, or the authorities of the system if CA is empty.
func (f Files) Client() (*tls.Config, error) {
	config := new(tls.Config)
	var err error
	if config.RootCAs, err = f.pool(); err != nil {
		return nil, err
	}
	config.Certificates, err = f.own()
	return config, err
}

// Server returns the configuration of a server. If CA is not empty, clients need a certificate that CA signed.
func (f Files) Server() (*tls.Config, error) {
	config := new(tls.Config)
	var err error
	if config.ClientCAs, err = f.pool(); err != nil {
		return nil, err
	}
	if config.ClientCAs != nil {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	config.Certificates, err = f.own()
	return config, err
}

// pool returns the certificates of the file CA, or nil for those of the system if no file is named.
func (f Files) pool() (*x509.CertPool, error) {
	if f.CA == "" {
		return nil, nil
	}
	pem, err := textfile.Read(f.CA, "certificates in PEM format")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: expected certificates in PEM format, found none", f.CA)
	}
	return pool, nil
}

// own returns the certificate with its key from the files Cert and Key, or none if neither is named. It returns an
// error if only one of them is named.
func (f Files) own() ([]tls.Certificate, error) {
	if f.Cert == "" && f.Key == "" {
		return nil, nil
	}
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("a certificate needs a key, and a key needs a certificate: name both")
	}
	c, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.Cert, f.Key, err)
	}
	return []tls.Certificate{c}, nil
}

// Credentials are a user name and a password. Their text form never contains the password.
type Credentials struct{ User, Password string }

func (c Credentials) String() string   { return "user " + c.User }
func (c Credentials) GoString() string { return c.String() }

// ReadCredentials reads a file whose last line is the password. A line before it is the user name.
func ReadCredentials(name string) (c Credentials, err error) {
	text, err := textfile.Read(name, "a login file")
	if err != nil {
		return c, err
	}
	if c, err = ParseCredentials(text); err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// ParseCredentials parses the text of a file as ReadCredentials does.
func ParseCredentials(text []byte) (c Credentials, err error) {
	lines := strings.Split(string(bytes.TrimRight(text, "\r\n")), "\n")
	c.Password = lines[len(lines)-1]
	if len(lines) == 2 {
		c.User = strings.TrimRight(lines[0], "\r")
	}
	if len(lines) > 2 || c.Password == "" {
		return Credentials{}, errors.New("expected a line with the password, or a line with the user name and a line with the password")
	}
	return c, nil
}
