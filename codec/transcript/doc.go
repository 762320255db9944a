// Package transcript parses, prints and matches transcripts, the notation in which jobwire shows, stores and
// performs conversations. A transcript is a list of steps. Each step is an action of one end of a connection.
// The notation has two forms, which can be mixed.
//
// The byte form is that of the example in the Gearman specification. A line names the direction. Each line
// below it has up to three columns: the bytes in hex, the bytes as text, and the label of the field that the
// bytes belong to.
//
//	Client -> Job Server
//	00 52 45 51                \0REQ        (Magic)
//	00 00 00 07                7            (Packet type: SUBMIT_JOB)
//	00 00 00 0d                13           (Packet length)
//	72 65 76 65 72 73 65 00    reverse\0    (Function)
//	00                         \0           (Unique ID)
//	74 65 73 74                test         (Workload)
//
// A block is one message. A line contains up to eight bytes, separated by single spaces, and at least two
// spaces after the last byte. A longer field continues in lines without a label; an empty field at the end of
// the message has no line. Every byte of the message is in exactly one line. A block whose first line has the
// label (Raw) is sent, or expected, as raw bytes. The parser compares text and label with the bytes and
// reports a difference. The text uses the escapes \0 \t \n \r \\ and \xNN; binary numbers are in decimal. A
// line of dots and a count represents bytes that a listing omits; such a listing cannot be parsed. An empty
// line ends a block.
//
// Messages of text protocols have lines of text. Each contains one line of the message, or a part of a long
// line:
//
//	Producer -> Server
//	"put 0 1 60 5\r\n"                      (put: Priority, Delay, TTR, Bytes)
//	"hello\r\n"                             (Body)
//
//	Server -> Producer
//	"INSERTED 7\r\n"                        (INSERTED: Job ID)
//
// Such a line is a quoted text of any length, in the syntax of quoted arguments below. Its label names the
// fields that begin in it; the name of the message type replaces the command word. A line in which no field
// begins has no label. The label may be omitted in the source. A field with an unprintable byte is printed in
// hex; on request, all fields are. A block may contain lines of hex and lines of text.
//
// The line form expresses the same message in one line:
//
//	Client -> Job Server: SUBMIT_JOB reverse "" test
//	Job Server -> Client: JOB_CREATED $handle
//
// # Actors
//
// An actor is the server, by its name, or a role of the protocol, optionally followed by a space and a name
// of letters and digits: "Worker", "Worker 2", "Client bob". Each connecting actor has one connection, which
// its first step opens. One end of each step is the server.
//
// # Steps
//
//	A -> B: TYPE arg...            sends a message, or expects one
//	A -> B: unchecked TYPE arg...  the same without checking the message: for deliberate violations of rules
//	A -> B: raw 00 52 "text\n"     raw bytes: pairs of hex digits and quoted text
//	A -> B: nothing for 100ms      sends nothing for that time
//	A -> B: opens                  connects and sends nothing yet; the actor's first step
//	A -> B: closes                 closes the connection
//	A -> B: half-closes            closes only its own direction
//	A -> B: resets                 resets the connection
//	A -> B: urgent "x"             sends bytes as urgent data of TCP; most programs do not receive the last byte
//	A -> B: stops-reading          stops reading, so that B can eventually send nothing more; A may become
//	                               unable to send as well, which is not a failure
//
// The following modifiers may follow a step, in any order:
//
//	within 2s           the deadline of an expectation
//	after 900ms         the earliest time at which the message may come, or at which it is sent,
//	                    measured from the previous step
//	after 900ms of put  the same, measured from the sending of the last put. It is also correct on slow
//	                    networks, if the message starts a time limit of the other side
//	until 1s of put     the end of that time limit: a later message that is not the expected one does
//	                    not prove a fault
//	past NOOP ECHO_RES  types of messages that may come before the expected one and are ignored
//	past *              ignores messages of all types
//	crlf                lines that end with CR LF where the protocol also allows LF
//
// The lines below an expectation may contain alternatives, one in each line after the word "or". An
// alternative after "or non-strict" is accepted but has a lower grade:
//
//	Job Server -> Worker: ERROR * *
//	  or closes
//	  or non-strict nothing for 200ms
//
// # Arguments
//
//	reverse        a word: no spaces, quotes, parentheses or backslashes, and no $ * # at its start
//	"a b\0\x7f"    quoted text: \0 \t \n \r \\ \" \xNN; and "x"*1000, repeated
//	*              any value
//	*version       the version of a program: a value with a digit, such as 1.1.20 or r7,
//	               that is not an error message
//	$name          a name: any value at its first use, and the same value from then on
//	$now+2         the time in seconds since 1970, plus or minus a number of seconds
//	...            any number of arguments at the end of an expectation, or of
//	               whole repetitions anywhere among those of a list
//
// The words within, after, until, past and crlf must be quoted if they are arguments. A binary number is
// written in decimal; quoted text gives its bytes.
//
// If a name is first used in a message that the performer sends, its value is a new word, so that repeated
// runs do not interfere. If it is first used in an expectation, it is bound to the received value. Values
// that the server chooses, such as job handles, may also be written as literals. Unless exact matching is
// requested, such a literal is bound at its first use like a name, and the bound value replaces it in later
// messages. A literal that is sent before it is bound keeps its own value. Different names or literals for
// such values must have different values.
//
// # Parameters
//
// A case can have parameters. "@for NAME in VALUES", below @case, declares a parameter. In any line of the
// case, {NAME} is replaced by its value, and {NAME+1} or {NAME-1} by the sum. [Parse] creates a script for
// each combination of the values of one or two parameters. For three or more parameters, it creates enough
// scripts that each pair of values occurs. VALUES are any of
//
//	1 64 word             numbers and words
//	empty="" x="x"*100    a label for the name of the instance, and the value as written in a step
//	1..9                  all numbers
//	bounds(1,200)         both bounds, and the numbers next to them: 1 2 199 200
//	powers(1,200)         both bounds, the powers of two between them, and the numbers next to those
//	max(TYPE.FIELD)       the largest value, or length in bytes, that the contract allows for the field; also as a bound
//	                      and with +1 or -1. FIELD is written as in the signature: put.priority
//	joined(use default)   the line without one of its spaces, once for each space
//	spaced(use default)   the line with other white space in the place of one space, twice for each space
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
// "measure NAME at SIZE:" marks the lines below it that are indented more as a sample ([Sample]).
//
// # Setups
//
// "A -> B: setup NAME arg..." stands for the steps of a setup, which a file of setups defines ([Setups]).
// An argument is a value, or name=value. With "check" in place of "setup", the steps are part of what the case tests.
//
// # Around the steps
//
// "#" begins a comment. "@key value" lines before the first step describe the script. "@case NAME" begins
// another script in the same file; lines before the first @case apply to all scripts of the file. "@tests RULE..."
// between the steps names the rules that the steps below it test, up to the next such line. The program
// that uses the scripts defines the keys and must reject unknown ones. A file whose steps are all in byte
// form and that has no @-line may contain prose between the steps, as the Gearman specification does:
// paragraphs without "->".
package transcript
