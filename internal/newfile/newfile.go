// Package newfile writes files that are complete: if a file cannot be written, because the disk is full, for example,
// it removes the file.
package newfile

import (
	"errors"
	"os"
)

// Write writes a file. It replaces a file with this name.
func Write(name string, data []byte) error {
	return write(name, os.O_TRUNC, data)
}

// WriteOnce writes a file. If a file with this name exists, it returns an error that wraps [os.ErrExist].
func WriteOnce(name string, data []byte) error {
	return write(name, os.O_EXCL, data)
}

func write(name string, flag int, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|flag, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return Close(f, err)
}

// Close closes a file after it was written with the result err. If that or closing it failed, it removes the file if
// it is a regular one. It returns the errors.
func Close(f *os.File, err error) error {
	info, unknown := f.Stat()
	err = errors.Join(err, f.Close())
	if err != nil && unknown == nil && info.Mode().IsRegular() {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
