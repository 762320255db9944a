package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recorded maps the files in testdata, which are outputs of real programs, to the buckets of their reports.
var recorded = map[string][]string{
	"asan-double-free-one": {"AddressSanitizer double-free: one < main at t.c:9"},
	"asan-double-free-two": {"AddressSanitizer double-free: two < main at t.c:10"},
	"asan-heap-overflow":   {"AddressSanitizer heap-buffer-overflow: main at t.c:19"},
	"asan-null": {"UndefinedBehaviorSanitizer signed-integer-overflow: t.c:25:32", "UndefinedBehaviorSanitizer null-pointer: t.c:25:65",
		"AddressSanitizer segmentation fault: main at t.c:25"},
	"asan-stack-overflow":  {"AddressSanitizer stack-overflow: deep"},
	"asan-stripped":        {"AddressSanitizer double-free: t.asanstrip+0x2369 < t.asanstrip+0x2734"},
	"asan-use-after-free":  {"AddressSanitizer heap-use-after-free: main at t.c:20"},
	"backtrace-stripped":   {"glibc double-free: bs+0x122c < bs+0x12c0"},
	"backtrace":            {"stack: bad_copy+0x1c < main+0x47"},
	"cpp":                  {"C++ exception: std::out_of_range: index # out of range"},
	"gearmand-sigabrt":     {"stack: gearmand+0x206dc < gearmand+0x20d92 < gearmand+0xdfc1"},
	"gearmand-sigsegv":     {"stack: libevent-2.1.so.7+0x2af34 < event_base_loop < gearmand+0x20cb8"},
	"glibc-assertion":      {"assertion: main at t.c:27"},
	"glibc-backtrace":      {"glibc double-free: bad_free+0x24 < main+0x59"},
	"glibc-double-free":    {"glibc double-free: free(): double free detected in tcache #"},
	"glibc-malloc":         {"glibc heap-corruption: malloc(): corrupted top size"},
	"glibc-stack-smashing": {"glibc stack-buffer-overflow: *** stack smashing detected ***: terminated"},
	"go-concurrent-map":    {"Go fatal error: main.main.func1 at main.go:17"},
	"go-panic-error":       {"Go panic: main.main at main.go:14"},
	"go-panic":             {"Go panic: main.(*queue).pop < main.handle < main.main at main.go:5"},
	"go-race":              {"Go data-race: main.add < main.add"},
	"go-repanic":           {"Go panic: main.main.func2 < main.main at main.go:18"},
	"go-stack-overflow":    {"Go stack-overflow: main.rec"},
	"java-cause":           {"Java exception: J.pop < J.handle < J.main at J.java:3"},
	"java":                 {"Java exception: J.pop < J.main at J.java:3"},
	"lsan":                 {"LeakSanitizer leak: lose < main at t.c:12", "LeakSanitizer leak: lose < main at t.c:12", "LeakSanitizer leak: main at t.c:24"},
	"node-memory":          {"Node.js out-of-memory: FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"},
	"node-recursion":       {"Node.js stack-overflow: g < h"},
	"node":                 {"Node.js exception: Queue.pop < handle < Object.<anonymous> at n.js:1"},
	"perl-confess":         {"Perl exception: main::pop_job < main::handle at p.pl:2"},
	"perl-die":             {"Perl exception: p.pl:2"},
	"python-cause":         {"Python exception: pop < handle at p.py:4"},
	"python-fatal":         {"Python segmentation fault: crash < <module> at r.py:7"},
	"python-library":       {"Python exception: dec < <module> at r.py:3"},
	"python-recursion":     {"Python stack-overflow: f"},
	"python":               {"Python exception: pop < handle < <module> at p.py:4"},
	"tsan":                 {"ThreadSanitizer data-race: inc < main"},
	"ubsan-stack":          {"UndefinedBehaviorSanitizer signed-integer-overflow: main at t.c:25:32", "UndefinedBehaviorSanitizer null-pointer: main at t.c:25:65"},
	"ubsan":                {"UndefinedBehaviorSanitizer signed-integer-overflow: t.c:25:32", "UndefinedBehaviorSanitizer null-pointer: t.c:25:65"},
	"valgrind-abort": {"Valgrind use-of-uninitialized-value: smash at t.c:13", "Valgrind use-of-uninitialized-value: smash at t.c:13",
		"glibc stack-buffer-overflow: smash at t.c:13"},
	"valgrind-double-free":    {"Valgrind double-free: two < main at t.c:10"},
	"valgrind-leaks":          {"Valgrind leak: main at t.c:24", "Valgrind leak: lose < main at t.c:12", "Valgrind leak: lose < main at t.c:12"},
	"valgrind-use-after-free": {"Valgrind heap-use-after-free: main at t.c:20"},
	"valgrind-write":          {"Valgrind heap-buffer-overflow: main at t.c:19"},
}

func buckets(output string) (all []string) {
	for _, r := range ParseAll(output) {
		all = append(all, r.Bucket())
	}
	return all
}

// TestRecordedOutputs tests that each recorded crash output gets its bucket, and the same bucket if the addresses and
// the process ID differ and log lines come before the report.
func TestRecordedOutputs(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) != len(recorded) {
		t.Fatalf("%d files, want %d, %v", len(files), len(recorded), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		output := string(data)
		if got := buckets(output); !slices.Equal(got, recorded[name]) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, recorded[name])
		}
		other := "INFO listening on 127.0.0.1:4730\n\x1b[31m" + shift(output)
		if got := buckets(other); !slices.Equal(got, recorded[name]) {
			t.Errorf("%s with other addresses:\ngot  %q\nwant %q", name, got, recorded[name])
		}
		for _, r := range ParseAll(output) {
			if text := r.Text + strings.Join(r.Frames, " "); r.Text == "" || strings.Contains(text, "/src/") || strings.Contains(text, "==") && !strings.Contains(text, "c==7") {
				t.Errorf("%s: text %q, frames %q", name, r.Text, r.Frames)
			}
		}
	}
}

var (
	mapped  = regexp.MustCompile(`0x[5-7][0-9a-f]{11}\b`)
	process = regexp.MustCompile(`(==|pid=|tid=)(\d+)\b`)
)

// shift changes the addresses and process IDs in an output, as a second run does.
func shift(output string) string {
	output = mapped.ReplaceAllStringFunc(output, func(s string) string {
		n, _ := strconv.ParseUint(s[2:], 16, 64)
		return fmt.Sprintf("%#x", n-0x1234567000)
	})
	return process.ReplaceAllString(output, "${1}77$2")
}

// TestFields tests that a crash report has the kind, the tool, the text, the stack frames and the place of the crash,
// and the number of leaked bytes.
func TestFields(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for name, want := range map[string]Report{
		"asan-heap-overflow": {Kind: "heap-buffer-overflow", Tool: "AddressSanitizer", Text: "AddressSanitizer: heap-buffer-overflow: WRITE of size 1", Frames: []string{"main"}, Place: "t.c:19"},
		"lsan":               {Kind: "leak", Tool: "LeakSanitizer", Text: "Direct leak of 50 byte(s) in 1 object(s)", Frames: []string{"lose", "main"}, Place: "t.c:12", Leaked: 50},
		"valgrind-leaks":     {Kind: "leak", Tool: "Valgrind", Text: "21 bytes in 3 blocks are definitely lost", Frames: []string{"main"}, Place: "t.c:24", Leaked: 21},
		"glibc-assertion":    {Kind: "assertion", Text: "t.c:27: Assertion `c==7' failed.", Frames: []string{"main"}, Place: "t.c:27"},
		"python":             {Kind: "exception", Tool: "Python", Text: "IndexError: list index out of range", Frames: []string{"pop", "handle", "<module>"}, Place: "p.py:4"},
		"go-repanic": {Kind: "panic", Tool: "Go", Text: "panic: runtime error: invalid memory address or nil pointer dereference", Signal: "segmentation fault",
			Frames: []string{"main.main.func2", "main.main"}, Place: "main.go:18"},
	} {
		got, ok := first(read(name))
		if len(got.Lines) == 0 || got.Total < len(got.Lines) {
			t.Errorf("%s: %d lines of %d", name, len(got.Lines), got.Total)
		}
		got.Lines, got.Total = nil, 0
		if !ok || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
	}
	if all := ParseAll(read("lsan")); len(all) != 3 || all[1].Leaked != 40 || all[2].Leaked != 21 {
		t.Errorf("leaks: %+v", all)
	}
	if r, ok := first("ready\nlistening on port 4730\n"); ok {
		t.Errorf("a report without a cause: %+v", r)
	}
}

// TestEnded tests that the exit status of a server and its output together give the cause of the crash, and that a
// killed server counts as killed, whatever its output says.
func TestEnded(t *testing.T) {
	for _, test := range []struct{ exit, output, bucket, signal, text string }{
		{"signal: segmentation fault (core dumped)", "", "segmentation fault", "segmentation fault", "the server process was killed by a signal: segmentation fault"},
		{"signal: aborted", "stack:\n/bin/d(+0x12) [0x55d012]\n/bin/d(+0x34) [0x55d034]\n", "abort: d+0x12 < d+0x34", "aborted", "killed by a signal: aborted, after it printed a stack trace"},
		{"exit status 139", "", "segmentation fault", "segmentation fault", "killed by signal 11 (segmentation fault)"},
		{"exit status 1", "", "exit status 1", "", "the server process ended: exit status 1"},
		{"exit status 1", "caught SIGSEGV\n", "segmentation fault", "segmentation fault", "its output reports: segmentation fault"},
		{"exit status 2", "Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\n    x()\nKeyError: 'x'\nstill running\npanic: no queue\n", "Go panic: panic: no queue", "", "exit status 2; its output reports: panic: no queue"},
		{"signal: killed", "Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\n    x()\nKeyError: 'x'\n", "killed",
			"killed", "the server process was killed by a signal: killed"},
		{"exit status 1", "d.c:3:4: runtime error: division by zero\n==5==ERROR: AddressSanitizer: FPE on unknown address 0x5581a0b1c2d3 (pc 0x1 T0)\n    #0 0x5581a0b1c2d3 in f d.c:3\n",
			"AddressSanitizer floating point exception: f at d.c:3", "floating point exception", "AddressSanitizer: FPE"},
	} {
		r := Ended(test.exit, test.output)
		if r.Bucket() != test.bucket || r.Signal != test.signal || !strings.Contains(r.Text, test.text) {
			t.Errorf("%s, %q: got %+v, bucket %q; want bucket %q", test.exit, test.output, r, r.Bucket(), test.bucket)
		}
	}
}

// TestTruncatedOutputs tests that a part of a sanitizer's report is recognized if the beginning or the end of the
// output is missing.
func TestTruncatedOutputs(t *testing.T) {
	for name := range recorded {
		data, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(data), "\n")
		for i := range lines {
			start, end := strings.Join(lines[:i], ""), strings.Join(lines[i:], "")
			if Ended("exit status 1", start).Bucket() == "" || Ended("exit status 1", end).Bucket() == "" {
				t.Errorf("%s: no bucket if cut at line %d", name, i)
			}
			if _, ok := first(end); !ok && strings.HasPrefix(name, "asan") && strings.Contains(end, "SUMMARY") {
				t.Errorf("%s: no report from line %d on", name, i)
			}
		}
	}
}

// first returns the first report in an output, or false if there is none.
func first(output string) (Report, bool) {
	all := ParseAll(output)
	if len(all) == 0 {
		return Report{}, false
	}
	return all[0], true
}
