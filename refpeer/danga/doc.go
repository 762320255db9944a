// Package danga is the reference application and the reference worker of the Danga draft. What they send is
// data: a [Program] of sequences over the rows of codec/danga, which can be edited. Nothing in them is
// wrong on purpose; refpeer/danga/mutants has those that are.
//
// An application has one job of type 0 done at a time, since what is streamed names no job. A worker cannot
// tell a noop that says no from one that wakes it: it sleeps upon one if it is awake, asks upon one if it
// sleeps, and takes a job whenever it comes.
//
// [Drive] is their driver, as docs/drivers.md has it.
package danga
