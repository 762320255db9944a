// Package play runs transcripts: it plays one side of a conversation, sends the messages of that side and compares the
// messages of the other side with the transcript.
//
// [Peers] plays the clients and workers against a server. [Server] plays the server for connecting clients and workers.
// With [Proxy], a program is one of the clients and workers: Proxy forwards its connections to the server, and plays
// the others. All return a [Result], which contains the actual conversation and, if it differs from the transcript, the
// [Failure].
package play
