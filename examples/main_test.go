package examples

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "6") // what tests do most is wait; the command line may say otherwise
	os.Exit(m.Run())
}
