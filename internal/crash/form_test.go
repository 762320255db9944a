package crash

import (
	"os"
	"testing"
)

// TestForms tests that the outputs of other systems, versions and languages are recognized and get their bucket, and
// that similar log lines are not taken for a crash.
func TestForms(t *testing.T) {
	for _, test := range []struct{ output, bucket string }{
		// C
		{"*** Error in `./server': double free or corruption (fasttop): 0x0000000001a3c010 ***\n",
			"glibc double-free: *** Error in `server': double free or corruption (fasttop): # ***"},
		{"free(): invalid pointer\n", "glibc bad-free: free(): invalid pointer"},
		{"munmap_chunk(): invalid pointer\n", "glibc bad-free: munmap_chunk(): invalid pointer"},
		{"corrupted size vs. prev_size\n", "glibc heap-corruption: corrupted size vs. prev_size"},
		{"*** buffer overflow detected ***: terminated\n",
			"glibc buffer-overflow: *** buffer overflow detected ***: terminated"},
		{"Assertion failed: n > 0 (src/queue.c: pop: 27)\n", "assertion: pop at queue.c:27"},
		{"Assertion failed: (n > 0), function pop, file queue.c, line 27.\n", "assertion: pop at queue.c:27"},
		{"libgearman-server/job.cc:310: Assertion '(job->ready)' failed\n", "assertion: job.cc:310"},
		{"server: Queue.cc:12: void Queue::pop(int): Assertion `n > 0' failed.\nAborted\n",
			"assertion: void Queue::pop(int) at Queue.cc:12"},
		{"assertion failed, giving up on job 17\n", "assert assertion: assertion failed, giving up on job #"},
		{"terminate called without an active exception\n", "C++ exception: terminate called without an active exception"},
		{"libc++abi: terminating due to uncaught exception of type std::out_of_range: vector 3\n",
			"C++ exception: std::out_of_range: vector #"},
		{"=== REDIS BUG REPORT START\nBacktrace:\n/usr/bin/redis-server 127.0.0.1:6379(lookupKey+0x1e)[0x55f0c0a1b2c3]\n" +
			"/usr/bin/redis-server 127.0.0.1:6379(main+0x10)[0x55f0c0a1b2c9]\n",
			"stack: lookupKey+0x1e < main+0x10"},

		// sanitizers
		{"==7==WARNING: MemorySanitizer: use-of-uninitialized-value\n    #0 0x4a1b2c " +
			"in parse(char const*, int) /src/parse.cc:9:7\n    #1 0x4a1b99 in main " +
			"/src/main.cc:3:1\n",
			"MemorySanitizer use-of-uninitialized-value: parse(char const*, int) < main at parse.cc:9"},
		{"==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000014 " +
			"at pc 0x4a\nREAD of size 5 at 0x602000000014 thread T0\n" +
			"    #0 0x43d6a5 in memcpy (/src/d+0x43d6a5) (BuildId: a1b2)\n    #1 0x4c3f1a " +
			"in copy /src/d.c:4:3\n    #2 0x7f00aa in __libc_start_main (/lib/libc.so.6+0x29d8f)\n",
			"AddressSanitizer heap-buffer-overflow: copy at d.c:4"},
		{"==7==ERROR: AddressSanitizer: attempting free on address which was not " +
			"malloc()-ed: 0x7ffd1 in thread T0\n    #0 0x4 in free x.cpp:3\n    #1 " +
			"0x4 in f d.c:8\n", "AddressSanitizer bad-free: f at d.c:8"},
		{"==7==ERROR: AddressSanitizer: requested allocation size 0xffffffffffffffff " +
			"exceeds maximum\n    #0 0x4 in malloc x.cpp:3\n    #1 0x4 in f d.c:8\n",
			"AddressSanitizer allocation-size-too-big: f at d.c:8"},
		{"==7==ERROR: AddressSanitizer: alloc-dealloc-mismatch (malloc vs operator " +
			"delete) on 0x602000000010\n    #0 0x4 in operator delete(void*) x.cpp:3\n" +
			"    #1 0x4 in f d.c:8\n",
			"AddressSanitizer alloc-dealloc-mismatch: f at d.c:8"},
		{"SUMMARY: AddressSanitizer: heap-use-after-free /src/d.c:120:5 in pop\n",
			"AddressSanitizer heap-use-after-free: pop at d.c:120"},
		{"SUMMARY: AddressSanitizer: stack-overflow /src/d.c:120:5 in pop\n", "AddressSanitizer stack-overflow: pop"},
		{"==7==ERROR: LeakSanitizer: detected memory leaks\n\nIndirect leak of 3 " +
			"byte(s) in 1 object(s) allocated from:\n    #0 0x7 in malloc m.cpp:1\n" +
			"    #1 0x5 in lose d.c:2\n\nSUMMARY: AddressSanitizer: 3 byte(s) leaked " +
			"in 1 allocation(s).\n",
			"LeakSanitizer leak: lose at d.c:2"},
		{"WARNING: ThreadSanitizer: lock-order-inversion (potential deadlock) (pid=7)\n" +
			"  Cycle in lock order graph:\n\n",
			"ThreadSanitizer lock-order-inversion: ThreadSanitizer: lock-order-inversion " +
				"(potential deadlock)"},

		// languages
		{"http: panic serving 127.0.0.1:5512: runtime error: slice bounds\ngoroutine " +
			"9 [running]:\nnet/http.(*conn).serve.func1()\n\t/go/src/net/http/server.go:1 " +
			"+0x1\npanic({0x1, 0x2})\n\t/go/src/runtime/panic.go:1 +0x1\nmain.pop(0xc0)\n" +
			"\t/src/q.go:8 +0x1\n",
			"Go panic: main.pop at q.go:8"},
		{"thread 'main' panicked at src/queue.rs:14:9:\nno job 17\n", "Rust panic: queue.rs:14:9"},
		{"thread 'main' panicked at 'no job', src/queue.rs:14:9\n", "Rust panic: queue.rs:14:9"},
		{"12:00:01 ERROR java.lang.StackOverflowError\n\tat a.Q.f(Q.java:3)\n\tat " +
			"a.Q.f(Q.java:3)\n\tat a.Q.f(Q.java:3)\n", "Java stack-overflow: a.Q.f"},
		{"# A fatal error has been detected by the Java Runtime Environment:\n#\n" +
			"#  SIGSEGV (0xb) at pc=0x00007f1b, pid=77, tid=78\n#\n# Problematic frame:\n" +
			"# C  [libqueue.so+0x1f2a]  pop+0x1a\n",
			"Java segmentation fault: libqueue.so+0x1f2a"},
		{"/src/q.rb:3:in `pop': no job 17 (RuntimeError)\n\tfrom /src/q.rb:7:in `<main>'\n",
			"Ruby exception: pop < <main> at q.rb:3"},
		{"q.rb:3:in 'Queue#pop': undefined method 'id' for nil (NoMethodError)\n", "Ruby exception: pop at q.rb:3"},
		{"PHP Fatal error:  Uncaught RuntimeException: no job in /src/q.php:3\nStack " +
			"trace:\n#0 /src/q.php(7): pop()\n#1 {main}\n  thrown in /src/q.php on " +
			"line 3\n",
			"PHP exception: q.php:3"},
		{"Fatal error: Allowed memory size of 134217728 bytes exhausted (tried to " +
			"allocate 4294967304 bytes) in /src/q.php on line 9\n", "PHP out-of-memory: q.php:9"},
		{"Fatal glibc error: malloc.c:2599 (sysmalloc): assertion failed: (old_top " +
			"== initial_top (av))\n", "assertion: malloc.c:2599"},
		{"node:internal/process/promises:394\n      triggerUncaughtException(err, " +
			"true /* fromPromise */);\n      ^\n\nTypeError: Cannot read properties " +
			"of undefined (reading 'id')\n    at Queue.pop (/src/q.js:3:9)\n    at " +
			"async Server.handle (/src/q.js:9:1)\n\nNode.js v20.1.0\n",
			"Node.js exception: Queue.pop < Server.handle at q.js:3"},
		{"backtrace: enabled\nlistening on 127.0.0.1:4730, abort on error: no, assertions: off\n", ""},
		{"Use of uninitialized value $x in addition (+) at /usr/bin/gearmand line 40.\n", ""},
		{"Can't call method \"id\" on an undefined value at /usr/share/perl5/Gearman/Server.pm " +
			"line 140, <GEN3> line 7.\n", "Perl exception: Server.pm:140"},
	} {
		got := ""
		if r, ok := first(test.output); ok {
			got = r.Bucket()
		}
		if got != test.bucket {
			t.Errorf("%q:\ngot  %q\nwant %q", test.output, got, test.bucket)
		}
	}
}

func FuzzParseAll(f *testing.F) {
	for name := range recorded {
		data, err := os.ReadFile("testdata/" + name + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, output string) {
		for _, r := range ParseAll(output) {
			if r.Bucket() == "" || len(r.Frames) > maxFrames {
				t.Errorf("%+v", r)
			}
		}
		Ended("signal: killed", output)
	})
}
