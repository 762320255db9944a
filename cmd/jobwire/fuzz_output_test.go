package main

import (
	"strings"
	"testing"
)

func TestLongLinesOfFindingsAreFolded(t *testing.T) {
	short := "Client -> Job Server: ECHO_REQ there"
	if got := folded(short); got != short {
		t.Errorf("%q", got)
	}
	long := short + strings.Repeat("x", mostShown)
	if got := folded(long); len(got) > mostShown+30 || !strings.HasPrefix(got, short) || !strings.HasSuffix(got, " ... and 36 bytes more") {
		t.Errorf("%q", got)
	}
}
