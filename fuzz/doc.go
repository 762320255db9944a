// Package fuzz looks for conversations that break a live server.
//
// A conversation ([Conv]) is what several peers do to a server: messages, bytes that are
// none, leaving, waiting. A [performer] holds it with the server over sockets of its own, in
// lockstep: a sentinel behind every message, a harmless request with a reply of its own,
// proves that whatever the server does of it has come, so that nobody ever waits for silence.
// Meanwhile oracles watch: the server's process, the codec's rules, a model of what a queue
// has to do, a bystander who must not be disturbed.
//
// What is new in a conversation, by the replies, the fates of connections and the states of
// the model, keeps it in a pool, from which others are made ([Fuzzer]). What an oracle
// objects to is performed again on fresh servers, made smaller as long as the objection
// holds, and told as a [Finding] only if it can be repeated.
package fuzz
