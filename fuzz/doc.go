// Package fuzz searches for inputs that make a running server fail.
//
// Each worker has its own server process and runs inputs on it, one after the other. The packages of the fuzzer import
// each other in one direction:
//
//   - input generates and mutates inputs, and keeps those with new coverage,
//   - exec executes an input on a server and detects failures, with the models of package model,
//   - transcribe writes an input and what was observed as a transcript,
//   - triage reproduces, minimizes and reports failures,
//   - fuzz is the loop that joins them.
//
// Each package imports those to the right of it that it needs:
//
//	fuzz ── triage ── transcribe ── exec ─┬─ input ── gen
//	                                      └─ model
//
// The replies, the disconnects and the states of the model are the coverage of an input. Coverage does not depend on
// time, so a run with one worker, a random seed and a number of inputs is repeatable.
//
// The fuzzer derives its knowledge of a protocol from the contract of the protocol: which request is a barrier, which
// fields are names, which messages belong together. A model is optional.
package fuzz
