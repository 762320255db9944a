// Package layout tests the source tree: which package may import which, that tests do not sleep, that libraries do not
// print, and that no file contains a path of one particular machine. The rules are the tables in its test files.
package layout
