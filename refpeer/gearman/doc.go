// Package gearman is the reference client and the reference worker of Gearman. What they send
// is data: a [Program] of sequences over the rows of codec/gearman, which can be edited. Nothing
// in them is wrong on purpose; refpeer/gearman/mutants has those that are.
//
// They take what comes in whatever pieces it comes, pass over what they did not ask for where
// the document lets a server send it, and never wait for what cannot come any more: the end of a
// connection and an ERROR end what waits for an answer.
//
// [Drive] is their driver, as docs/drivers.md has it.
package gearman
