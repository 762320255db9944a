package fuzz

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() == "" && !given("test.parallel") { // it is also the number of fuzzing processes
		flag.Set("test.parallel", "6") // tests mostly wait
	}
	os.Exit(m.Run())
}

// given reports whether the command line has the flag.
func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}
