// Package fuzz searches for inputs that make a running server fail.
//
// An [Input] is a sequence of messages, illegal bytes, disconnects and pauses of several peers. Each worker has its own
// server process and runs inputs on it, one after the other. After each message, the executor sends a barrier: a
// request that changes nothing and to which the server must reply at once. The reply proves that all effects of the
// message have arrived, so the executor need not wait for a period of silence. Oracles detect failures: they check the
// process of the server, its output, the rules of the codec, a model of the queue, and a canary, which is a client that
// an input must not disturb.
//
// A [Log] contains all inputs of one server. If an oracle reports a fault, triage runs the log, or its last entries, on
// new servers and reduces it by delta debugging: first to the inputs that the fault needs, then to the messages,
// arguments and bytes. A fault that appears again is a [Finding]; a crash is a finding even if it does not appear
// again. Crashes with the same stack are one finding. Other faults are one finding if the oracle and the effects of the
// messages are the same.
//
// The replies, the disconnects and the states of the model are the coverage of an input. Inputs with new coverage are
// added to the corpus, from which the generator makes new inputs. Coverage does not depend on time, so a run with one
// worker, a random seed and a number of inputs is repeatable.
//
// The fuzzer derives its knowledge of a protocol from the contract of the protocol: which request is a barrier, which
// fields are names, which messages belong together. A model is optional.
package fuzz
