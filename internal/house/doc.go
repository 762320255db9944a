// Package house keeps the house rules, as tests: who may import what, no sleeps
// in tests, no printing in libraries, nothing in the tree that belongs to one
// machine. The rules are the tables in its test files.
package house
