// Package faults contains edits that inject one fault each into the programs of reference clients and workers. The mutants
// of the protocols use them.
package faults
