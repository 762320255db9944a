// Package exec executes the inputs of the fuzzer on a server, and detects failures.
//
// An [Executor] belongs to one server. After each message, it sends a [Barrier]: a request that changes nothing and to
// which the server must reply at once. The reply proves that all effects of the message have arrived, so the executor
// need not wait for a period of silence. A [Record] contains the events of an execution and its coverage, and the
// [Fault] that an oracle has reported. The oracles check the rules of the codec, a model of the queue, a canary, which
// is a client that an input must not disturb, and, with [Verdict], the process of the server and its output.
package exec
