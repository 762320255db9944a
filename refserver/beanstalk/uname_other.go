//go:build !linux

package beanstalk

import "runtime"

// system returns the operating system and the architecture.
func system() (os, platform string) { return runtime.GOOS, runtime.GOARCH }
