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
// # Driver
//
// [Drive] carries out tasks that a test suite writes to it, as docs/drivers.md says.
package gearmonkey
