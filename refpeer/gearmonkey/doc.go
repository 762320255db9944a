// Package gearmonkey is the reference client and the reference worker of
// GearMonkey: they send what the document lists, in its order, over the rows of
// codec/gearmonkey. Nothing in them is wrong on purpose, but what they do is data: a
// [Program] of sequences, which can be edited.
//
// # Readings
//
// Where the document is silent or contradicts itself:
//
//   - A roll call fails on a count below 0, as its listing has it.
//   - Client.run sends a command only when the one before was answered well, so that
//     an ID never stands in a queue without its hash. A failed call leaves behind
//     what it had created; the document names nothing to take it back with.
//   - A client whose wait ends early leaves the job as it is. The lock that the
//     worker pushes then is there for 10 seconds.
//   - A job that is not there, or no more, has an empty hash, which is no error.
//   - A worker gets the input with HGET, behind the status "busy". If there is none the
//     job ends with the status "error".
//   - The output of a failed job is the text of its error.
//   - A script that the server has forgotten is loaded again, once for each EVALSHA.
//   - A worker of several functions asks for them in turn, each in the document's
//     form; see [Worker].
//   - Every INCR of a count that was answered is followed by one DECR at a clean
//     exit, also if an error ends the loop. A worker that loses its connection
//     stays in the count: nothing can be sent any more.
//
// # The driver contract
//
// A suite that judges clients and workers must have them do things. A driver is a
// program, in any language, around any GearMonkey library, that reads tasks from
// its standard input and writes answers to its standard output; where the Redis
// server is it is told by whoever starts it. [Drive] is the driver of this package.
//
// A task is a line that ends with LF, and so is an answer; each task is answered
// with one line, before the next is read. The driver ends, with status 0, at the end of its
// input. It may connect when it likes and keep connections between tasks, but what
// a task does is done when it is answered: a worker has left by then.
//
// A line is words, separated by blanks. A word that is empty, or holds a blank,
// a double quote, a backslash or a byte that is not printable ASCII, stands in double
// quotes, with the escapes \0 (NUL) \t \n \r \\ \" and \xNN (two hex digits); any word
// may. A byte above 0x7f may stand for itself between the quotes, and behind them
// *COUNT repeats the word: "x"*1000. Words are byte strings; a library that knows only
// text takes them as UTF-8, as far as they are.
//
// The tasks are:
//
//	run FUNCTION INPUT [OPTION...]          ->  ok ID
//	get FUNCTION ID                         ->  ok STATUS OUTPUT [FIELD VALUE]...
//	work FUNCTION[,FUNCTION...] HOW JOBS    ->  ok JOBS-DONE
//
// run calls Client.run. Its options, in any order, are priority= with low, normal,
// high or scheduled; at= with the time in seconds since 1970 for which a job of
// priority scheduled is meant; blocking= with the time-out in seconds, 0 being
// for ever; rollcall. An option that is not given is not given to the library either, so that
// its own default shows.
//
// get calls Client.get. STATUS and OUTPUT are "" where the job has none, as a
// job has that is unknown. What else the library tells may follow in pairs.
//
// work starts a worker that accepts the functions, whose names hold no comma
// here, and lets it leave in the orderly way. JOBS is the number of jobs, of any
// outcome, behind which it leaves; 0 is to leave when a round of all functions has
// found nothing. HOW is what it does with a job:
//
//	echo      the output is the input
//	reverse   the output is the input, its bytes in reverse order
//	empty     the output is empty
//	fail      it raises an error whose text is the input
//	progress  it calls Worker.update(1, 2), then does as echo
//
// A task that fails is answered "error", a code, and words that explain it:
//
//	error nothing-registered ...   the roll call failed
//	error no-id ...                the answer to INCR was neither an ID nor an error
//	error timed-out ID             a run that blocks; the job exists
//	error redis TEXT               the server's error, or a reply that does not fit
//	error connection ...           connecting, sending or receiving failed
//	error usage ...                the task, or what it asks for, is wrong; nothing was sent
//
// What stands there as dots is for people, and may be missing.
package gearmonkey
