package audit

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "16") // tests mostly wait; the command line can override this
	os.Exit(m.Run())
}
