// Package gearmonkey contains the reference client and the reference worker of GearMonkey. They send the commands that
// the specification lists, in its order, as message types of codec/gearmonkey, with a program of package peer that can
// be edited. [Document] has no deliberate fault; refpeer/gearmonkey/mutants contains programs with faults.
//
// # Interpretations
//
// Where the specification is silent or contradicts itself:
//
//   - A roll call fails if the count is below 0, as in the listing of the specification.
//   - Client.run sends a command only after the previous one has succeeded, so that a queue
//     never contains an ID without a hash. After a failure, what was created remains: the
//     specification defines no commands to remove it.
//   - A client that stops waiting does not change the job. The lock that the worker pushes
//     afterwards expires after 10 seconds.
//   - A job that does not exist, or has expired, has an empty hash, which is not an error.
//   - A worker reads the input with HGET, after it has set the status to "busy". If there is
//     no input, the job ends with the status "error".
//   - The output of a failed job is the text of its error.
//   - If the server does not know the script, the worker loads it again, once per EVALSHA.
//   - A worker with several functions polls them in turn, each with the commands of the
//     specification, whether or not the previous round returned a job, so that a busy function
//     does not delay the others. A round without a job takes a second, so a job may wait for as
//     many seconds as there are functions.
//   - Every INCR of a count that succeeded is followed by one DECR at a clean exit, also if
//     an error ends the loop. A worker that loses its connection remains in the count,
//     because it cannot send anything any more.
package gearmonkey
