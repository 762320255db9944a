// Package sanitized tests the fuzzer with a small server in C that is compiled with sanitizers.
package sanitized
