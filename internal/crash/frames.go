package crash

import (
	"cmp"
	"maps"
	"path"
	"slices"
)

// A frame is one line of a stack. At least the function or the module is known.
type frame struct {
	function string
	module   string // base name of the program or library
	offset   string // hexadecimal offset in the module or in the function, with 0x; "" if unknown
	file     string // path as printed
	line     string
}

// name returns the form of the frame in Report.Frames, or "" if nothing is known.
func (f frame) name() string {
	switch {
	case f.function != "" && f.file == "" && f.offset != "":
		return f.function + "+" + f.offset
	case f.function != "":
		return f.function
	case f.module != "" && f.offset != "":
		return f.module + "+" + f.offset
	}
	return f.module
}

func (f frame) place() string {
	if f.file == "" || f.line == "" {
		return ""
	}
	return path.Base(f.file) + ":" + f.line
}

// setStack sets Frames and Place of a report. It omits the leading frames for which internal returns true, because they
// do not belong to the program. If all frames are internal, it keeps all of them.
func (r *Report) setStack(stack []frame, internal func(frame) bool) {
	if r.Kind == "stack-overflow" && r.setRecursion(stack) {
		return
	}
	i := slices.IndexFunc(stack, func(f frame) bool { return !internal(f) })
	stack = stack[max(i, 0):]
	r.Frames = nil
	for i, f := range stack {
		if i == 0 {
			r.Place = cmp.Or(r.Place, f.place())
		}
		if name := f.name(); name != "" && len(r.Frames) < maxFrames {
			r.Frames = append(r.Frames, name)
		}
	}
}

// setRecursion sets the frames of a stack overflow to the functions that occur at least three times on the stack,
// sorted. The order does not count, because the function that exceeds the stack differs between runs. It returns false
// if there is no such function.
func (r *Report) setRecursion(stack []frame) bool {
	count := map[string]int{}
	for _, f := range stack {
		f.offset = ""
		if f.function != "" {
			count[f.function]++
		}
	}
	maps.DeleteFunc(count, func(_ string, n int) bool { return n < 3 })
	if len(count) == 0 {
		return false
	}
	r.Frames = slices.Sorted(maps.Keys(count))
	r.Frames = r.Frames[:min(maxFrames, len(r.Frames))]
	return true
}

// starts matches the functions that call main or the first function of a thread.
var starts = lazily(`^(?:__libc_start_\w+|_start|start_thread|clone3?|__clone3?|\(below main\)|asan_thread_start.*)$`)

// withoutStart removes the outermost frames, which belong to the start of the process or thread.
func withoutStart(stack []frame) []frame {
	i := slices.IndexFunc(stack, func(f frame) bool { return starts().MatchString(f.function) })
	if i <= 0 {
		return stack
	}
	if f := stack[i-1]; i > 1 && f.function == "" && libraries().MatchString(f.module) {
		i-- // the frame of __libc_start_call_main has no function name
	}
	return stack[:i]
}

var (
	// libraries matches modules that do not belong to the program.
	libraries = lazily(`^(?:lib[atlmu]?[a-z]*san\w*|libc|libc-[\d.]+|libpthread\S*|libstdc\+\+|libc\+\+\S*|libgcc_s|libclang_rt\S*|ld-linux\S*|ld-musl\S*|vgpreload\S*|linux-vdso)(?:[.-]\S*)?$`)

	// librarySources matches source files of sanitizers and of the C library.
	librarySources = lazily(`libsanitizer/|compiler-rt/|/sysdeps/|^\.\.?/(?:csu|malloc|nptl|stdlib|string|libio|signal|assert|debug|stdio-common|misc|io)/|/libstdc\+\+-v3/`)

	// libraryFunctions matches functions of the C library, allocators and sanitizers that are innermost in the stacks
	// of faults.
	libraryFunctions = lazily(`^(?:___?interceptor_.*|__(?:asan|ubsan|sanitizer|lsan|tsan|msan|libc|GI|memcpy|memmove|memset|str|mem|fortify|stack_chk|assert|pthread|chk|vfprintf|cxa|gnu_cxx)_?.*|` +
		`operator (?:new|delete).*|malloc|calloc|realloc|reallocarray|free|cfree|aligned_alloc|posix_memalign|memalign|v?asprintf|getdelim|getline|` +
		`abort|raise|gsignal|kill|pthread_kill|tgkill|malloc_printerr|_int_\w+|tcache_\w+|unlink_chunk.*|munmap_chunk|sysmalloc|malloc_consolidate|` +
		`(?:mem|str|wcs|wmem)(?:cpy|move|set|cmp|chr|rchr|len|nlen|ncmp|ncpy|cat|ncat|casecmp|ncasecmp|spn|cspn|str|dup|ndup)|strto[ul]*l|` +
		`v?f?printf|v?sn?printf|puts|fputs|sscanf|ato[il]+|std::(?:terminate|__throw).*|_IO_\w+.*|new_do_write|write|read)$`)
)

// internalC reports whether a frame of a program in C or C++ belongs to the C library, the allocator or a sanitizer.
func internalC(f frame) bool {
	return f.function == "" && f.module == "" || libraries().MatchString(f.module) || librarySources().MatchString(f.file) ||
		libraryFunctions().MatchString(f.function)
}
