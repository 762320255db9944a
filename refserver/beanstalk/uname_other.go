//go:build !linux

package beanstalk

import "runtime"

// system tells the operating system and the machine's kind.
func system() (os, platform string) { return runtime.GOOS, runtime.GOARCH }
