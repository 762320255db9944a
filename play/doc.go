// Package play performs transcripts: it takes one side of a conversation, sends
// what that side says and holds what the other side says against the rest.
//
// [Peers] plays the clients and workers against a server, [Server] plays the
// server against whoever connects. Both return a [Result], which holds the conversation
// as it went and, if it went otherwise than the transcript says, the [Failure].
package play
