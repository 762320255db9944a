// Package input makes the inputs of the fuzzer: it generates and mutates them, and keeps those with new coverage.
//
// An [Input] is a sequence of messages, illegal bytes, disconnects and pauses of several peers. A [Generator] makes inputs
// from the message types of a protocol, from templates, and from other inputs. A [Corpus] selects the inputs to mutate. A
// [Log] contains all inputs of one server. [Traits] say what inputs of a protocol must not contain, and how several
// inputs share one server: each has a prefix for its names.
package input
