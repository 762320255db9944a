// Package fuzz looks for inputs that break a running server.
//
// An [Input] is what several peers do to a server: messages, illegal bytes, disconnects, pauses. Each worker owns a server
// process and runs inputs on it, one after the other. After each message the executor sends a barrier: a request that changes
// nothing and that the server answers at once. The reply proves that all effects of the message have arrived, so the executor
// never waits for silence. Meanwhile oracles watch the server: its process, its output, the rules of the codec, a model of the
// queue, and a canary, a client that the input must not disturb.
//
// A [Log] contains everything that a server was sent. If an oracle reports a fault, triage sends the log, or its end, to new
// servers, and reduces it by delta debugging: first to the inputs that the fault needs, then to messages, arguments and bytes.
// A fault that can be repeated is a [Finding]; a crash is one at once. Crashes with the same stack are one finding, and other
// faults if the oracle and the effects of the messages are the same.
//
// The replies, the ends of connections and the states of the model are the coverage of an input. Inputs with new coverage are
// added to the corpus, from which the generator makes new inputs. Coverage does not depend on time, so one worker with a seed
// and a number of inputs always does the same.
//
// What the fuzzer knows of a protocol it derives from the contract: which request is a barrier, what is a name, which
// messages belong together. A model is optional.
package fuzz
