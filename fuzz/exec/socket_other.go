//go:build !unix

package exec

import "errors"

// resolve returns an error, because the fuzzer uses system calls of Unix.
func resolve(string) (transport, error) {
	return nil, errors.New("jobwire can fuzz servers on Unix only")
}
