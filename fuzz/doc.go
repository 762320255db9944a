// Package fuzz looks for inputs that break a running server.
//
// An [Input] is what several peers do to a server: messages, illegal bytes, disconnects, pauses. An executor runs it over
// its own sockets. After each message it sends a barrier: a request that changes nothing and that the server answers at
// once. The reply proves that all effects of the message have arrived, so the executor never waits for silence. Meanwhile
// oracles watch the server: its process, the rules of the codec, a model of the queue, and a canary, a client that the
// input must not disturb.
//
// The replies, the ends of connections and the states of the model are the coverage of an input. Inputs with new coverage
// are added to the corpus, from which the generator makes new inputs. A fault that an oracle reports is reproduced on new
// servers, minimized, and reported as a [Finding] only if it can be repeated.
//
// What the fuzzer knows of a protocol it derives from the contract: which request is a barrier, what is a name, which
// messages belong together. A model is optional.
package fuzz
