// Package faults makes the programs of reference clients and workers wrong, each in one way: for
// the mutants of the protocols.
package faults
