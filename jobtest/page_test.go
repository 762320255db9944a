package jobtest_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/beanstalkd/go-beanstalk"

	"jobwire/jobtest"
)

// enqueue is the function that the page tests. It puts a job into a queue, and tries once more if the server refuses the job.
func enqueue(addr, file string) error {
	c, err := beanstalk.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err = c.Put([]byte(file), 0, 0, time.Minute); err != nil {
		_, err = c.Put([]byte(file), 0, 0, time.Minute)
	}
	return err
}

// serve is the server that the page tests.
var serve = reference("beanstalk", "")

// TestEnqueue tests that the client of the example puts a job with the file name.
func TestEnqueue(t *testing.T) {
	srv := jobtest.NewServer(t, "beanstalk", jobtest.Options{})
	if err := enqueue(srv.Addr(), "photo.jpg"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(srv.Transcript(), "-> Server: put 0 0 60 photo.jpg\n") {
		t.Errorf("the server received no job:\n%s", srv.Transcript())
	}
}

// TestEnqueueTriesAgain tests that the client of the example sends a job again after the server has refused it.
func TestEnqueueTriesAgain(t *testing.T) {
	srv := jobtest.NewServer(t, "beanstalk", jobtest.Options{
		Faults: []string{"answer put DRAINING nth=1"}, // refuse the first job of each connection
	})
	if err := enqueue(srv.Addr(), "photo.jpg"); err != nil {
		t.Fatal(err)
	}
	puts := 0
	for _, m := range srv.Received() {
		if m.Type != nil && m.Type.Name == "put" {
			puts++
		}
	}
	if puts != 2 {
		t.Errorf("expected 2 put commands, got %d", puts)
	}
}

// TestConformance tests that the server of the example passes the cases about the command use.
func TestConformance(t *testing.T) {
	jobtest.Conform(t, "beanstalk", jobtest.ConformOptions{
		Serve: serve,                       // func(context.Context, net.Listener) error
		Run:   []string{"beanstalk.use.*"}, // only these cases
	})
}

// TestPagesShowTheseTests checks that the Go code of the pages is in this file or in that of the example, so that it
// compiles and passes.
func TestPagesShowTheseTests(t *testing.T) {
	var tests []byte
	for _, name := range []string{"page_test.go", "../examples/goworker/worker_test.go"} {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, src...)
	}
	for _, name := range []string{"test-in-go.md", "test-in-virtual-time.md"} {
		page, err := os.ReadFile("../docs/tasks/" + name)
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(page, -1)
		if len(blocks) == 0 {
			t.Errorf("%s has no Go code", name)
		}
		for _, b := range blocks {
			for part := range bytes.SplitSeq(b[1], []byte("\n\n")) {
				if !bytes.Contains(tests, bytes.TrimSpace(part)) {
					t.Errorf("no test contains this code of %s:\n%s", name, part)
				}
			}
		}
	}
}
