package main

import (
	"fmt"
	"os"

	"jobwire/pcap/decrypt"
)

// tlsKeys are the secrets of --tls-keys. Their file stays open, because programs may append to it while decode reads from an
// interface.
type tlsKeys struct {
	*decrypt.Keys
	close func() error
}

// keys opens the key log that the command line names, if any.
func (o *decodeOptions) keys() (tlsKeys, error) {
	if o.tlsKeys == "" {
		return tlsKeys{nil, func() error { return nil }}, nil
	}
	f, err := os.Open(o.tlsKeys)
	if err != nil {
		return tlsKeys{}, usage(fmt.Errorf("--tls-keys: %w", err))
	}
	k, err := decrypt.NewKeys(f)
	if err != nil {
		f.Close()
		return tlsKeys{}, usage(fmt.Errorf("--tls-keys: %s: %w", o.tlsKeys, err))
	}
	return tlsKeys{k, f.Close}, nil
}
