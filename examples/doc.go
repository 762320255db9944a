// Package examples holds drivers of real libraries, to be copied and adapted, and cases about
// clients and workers. Its tests hold the former against the latter.
package examples
