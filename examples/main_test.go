package examples

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs up to six tests at the same time, because they mostly wait.
func TestMain(m *testing.M) {
	flag.Set("test.parallel", "6") // tests mostly wait; the command line can override this
	os.Exit(m.Run())
}
