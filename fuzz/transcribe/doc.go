// Package transcribe writes an input that makes a server fail, with what was observed, as a transcript: a text that people
// can read, play sends again, and conform can use as a case. Which replies a transcript must expect so that it fails on
// the server and passes on a correct one depends on the fault, so a [Failure] has several forms.
package transcribe
