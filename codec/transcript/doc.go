// Package transcript is the notation in which jobwire shows, stores and
// performs conversations. A transcript is a list of steps; each step says which
// end of which connection does what. It has two forms, which may be mixed.
//
// The byte form is that of the example in the Gearman document. A line names
// the direction, and every line below it is a row: the bytes in hex, the bytes
// as text, and the label of the field they belong to.
//
//	Client -> Job Server
//	00 52 45 51                \0REQ        (Magic)
//	00 00 00 07                7            (Packet type: SUBMIT_JOB)
//	00 00 00 0d                13           (Packet length)
//	72 65 76 65 72 73 65 00    reverse\0    (Function)
//	00                         \0           (Unique ID)
//	74 65 73 74                test         (Workload)
//
// A block is one message. A row holds up to eight bytes, one blank between two
// of them and at least two blanks behind the last; a longer field goes on in
// rows without a label, and an empty one at the end of the message has no row.
// Every byte of the message stands in exactly one row. A block whose first row
// is labelled (Raw) is sent, or expected, as bare bytes. Text and label are
// checked against the bytes, so that a row cannot lie: the text has the escapes
// \0 \t \n \r \\ and \xNN, binary numbers stand in decimal. A row of dots and a
// count stands for bytes left out of a listing; such a listing cannot be read
// back. A blank line ends a block.
//
// Messages of text have rows of text, one for each line on the wire, or, of a
// long line, for a part of it:
//
//	Producer -> Server
//	"put 0 1 60 5\r\n"                      (put: Priority, Delay, TTR, Bytes)
//	"hello\r\n"                             (Body)
//
//	Server -> Producer
//	"INSERTED 7\r\n"                        (INSERTED: Job ID)
//
// Such a row is a quoted text, as among the arguments below, of any length. Its
// label names the fields that begin in it, with the type's name in the place of
// its word; a row in which none begins has no label. Who writes one may leave
// the label out. A field that holds an unprintable byte is listed in hex, as
// are all of them on demand. Both kinds of row may stand in one block.
//
// The line form says the same in a line:
//
//	Client -> Job Server: SUBMIT_JOB reverse "" test
//	Job Server -> Client: JOB_CREATED $handle
//
// # Actors
//
// An actor is the server, by its name, or a role of the protocol, optionally
// followed by a space and a name of letters and digits: "Worker", "Worker 2",
// "Client bob". Each connecting actor has one connection, opened by its first
// step. One end of a step is the server.
//
// # Steps
//
//	A -> B: TYPE arg...            sends a message, or expects one
//	A -> B: unchecked TYPE arg...  the same without judging it: for breaking rules on purpose
//	A -> B: raw 00 52 "text\n"     bare bytes: pairs of hex digits and quoted text
//	A -> B: nothing for 100ms      silence that long
//	A -> B: opens                  connects, and says nothing yet; the actor's first step
//	A -> B: closes                 ends the connection
//	A -> B: half-closes            ends its own direction only
//	A -> B: resets                 breaks the connection off
//	A -> B: urgent "x"             sends bytes as urgent data of TCP; most programs do not receive its last byte
//	A -> B: stops-reading          reads nothing more, so that B cannot send any more at some point; A may be
//	                               unable to send any more as well, which is not a failure
//
// Behind a step may stand, in any order: "within 2s", the deadline of an
// expectation; "after 900ms", the earliest time at which it may come, or is sent, measured
// from the step before; "after 900ms of put", measured from the sending of the last put, which is right on
// slow networks too, where the message starts a time limit of the other side; "until 1s of put", the end of
// that time limit: a message that comes later, and is not the expected one, does not prove a fault; "past
// NOOP ECHO_RES", types that may come before it and are passed over, or "past *",
// which are all of them; "crlf", lines that end CR LF where the protocol allows LF
// alone.
//
// Below an expectation other acceptable ones may stand, one to a line, "or"
// first; "or lax" accepts with a lesser grade:
//
//	Job Server -> Worker: ERROR * *
//	  or closes
//	  or lax nothing for 200ms
//
// # Arguments
//
//	reverse        a word: no blanks, quotes, parentheses, backslashes, or any of $ * # at its start
//	"a b\0\x7f"    quoted text: \0 \t \n \r \\ \" \xNN; and "x"*1000, repeated
//	*              anything
//	*version       the version of a program: a value with a digit, such as 1.1.20 or r7,
//	               that is not an error message
//	$name          whatever stood there at first, the same from then on
//	$now+2         the time in seconds since 1970, plus or minus so many
//	...            any number of arguments at the end of an expectation, or of
//	               whole repetitions anywhere among those of a list
//
// The words within, after, until, past and crlf need quotes as arguments. A binary
// number is written in decimal; quoted, it is its bytes.
//
// A name that is first mentioned in what the performer sends stands for a
// fresh word, so that performances do not meet; one first mentioned in what is
// expected is bound to what comes. Values that the server chooses, such as job
// handles, may be written out: unless exactness is asked for, a literal handle is
// bound at its first mention as if it were a name, and what is sent later is
// rewritten. Sent before anything was bound to it, it stands for itself.
// Different names, or literals, for such values stand for different values.
//
// # Parameters
//
// A case may range over values. "@for NAME in VALUES", below @case, declares a parameter; {NAME} in any line of the
// case stands for its value, and {NAME+1} and {NAME-1} for a number near it. [Parse] makes a script for each combination
// of the values of one or two parameters, and from three parameters on for as many combinations as contain each
// pair of values. VALUES are any of
//
//	1 64 word             numbers and words
//	empty="" x="x"*100    a label for the name of the instance, and the value as it stands in a step
//	1..9                  all numbers
//	bounds(1,200)         both bounds, and the numbers next to them: 1 2 199 200
//	powers(1,200)         both bounds, the powers of two between them, and the numbers next to those
//	max(TYPE.FIELD)       the largest value, or length in bytes, that the contract allows for the field; also as a bound
//	                      and with +1 or -1. FIELD is written as in the signature: put.priority
//	unused(0,255)         the numbers that no message type has
//	chars(TYPE.FIELD)     each byte that a value of the field may begin with, named as x2d
//	illegal(TYPE.FIELD)   each byte that is not allowed in it
//	notfirst(TYPE.FIELD)  each byte that is allowed in it, but not at its beginning
//	bodies                bodies of jobs: empty, binary, multibyte, line ends and more
//
// "but" after the values removes those with the labels that follow: illegal(use.tube) but x0a
//
// "each NAME in 1..N:" repeats the lines below it that are indented more, with {NAME} set to each number:
//
//	each i in 1..{workers}:
//	  Worker {i} -> Job Server: CAN_DO $fn
//
// # Setups
//
// "A -> B: setup NAME arg..." stands for the steps of a setup, which a file of setups defines ([Setups]). With
// "check" in the place of "setup" they are part of what the case tests.
//
// # Around the steps
//
// "#" begins a comment. "@key value" lines before the first step describe the
// script; "@case NAME" begins another script in the same file, and what stands
// before the first @case describes them all. What the keys mean is up to the
// reader of the script, who refuses unknown ones. A file whose steps are all in
// byte form and that has no @-line may hold prose between them, as the Gearman
// document does: paragraphs in which no "->" stands.
package transcript
