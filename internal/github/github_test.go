package github

import (
	"fmt"
	"strings"
	"testing"
)

// TestWrite tests the order, the escapes and the limits of annotations.
func TestWrite(t *testing.T) {
	var r Report
	r.Add(Warning, "second", "a", "", "b")
	r.Add(Error, "a: 100 %, or so", "50 %\r\n: ,")
	var b strings.Builder
	if err := r.Write(&b, "jobwire", "1 error"); err != nil {
		t.Fatal(err)
	}
	want := "::error title=a%3A 100 %25%2C or so::50 %25%0D%0A: ,\n::warning title=second::a%0Ab\n::notice title=jobwire::1 error\n"
	if b.String() != want {
		t.Errorf("expected\n%s, got\n%s", want, b.String())
	}
}

// TestManyAnnotations tests that no more annotations are written than GitHub shows, and that the summary counts the rest.
func TestManyAnnotations(t *testing.T) {
	var r Report
	for i := range 25 {
		r.Add([]Level{Error, Notice}[i%2], fmt.Sprint(i))
	}
	var b strings.Builder
	if err := r.Write(&b, "jobwire", "many"); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	if errors, notices := strings.Count(got, "::error "), strings.Count(got, "::notice "); errors != 10 || notices != 10 {
		t.Errorf("expected 10 errors and 10 notices, got %d and %d", errors, notices)
	}
	if want := "many%0AThere are 3 more with the level error.%0AThere are 3 more with the level notice.\n"; !strings.HasSuffix(got, want) {
		t.Errorf("expected %q at the end of\n%s", want, got)
	}
}
