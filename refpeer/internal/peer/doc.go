// Package peer is the reference client and worker of every protocol. What they send is data: a [Program] contains named
// sequences of message types. What they do with the messages of the server follows from the effects of the message
// types (see package codec): a reply belongs to the request that it may answer, a result to the job that it names, and
// a worker asks, sleeps and wakes as these effects say.
//
// A client sends:
//
//	Submit     to submit a job
//	Created    after the server has accepted a job whose end the client waits for
//	Quit       before it closes a connection
//
// and other sequences of its protocol, for the tasks of their names. A worker sends:
//
//	Start      at the start
//	Enter      then, for each of its queues
//	Ask        to request a job
//	Sleep      when the server has none
//	Report     about a job before its end
//	End        at the end of a job
//	Exit       when it leaves, for each queue that it has entered
//	Leave      then, before it closes the connection
//
// [Program.Drive] performs the tasks of docs/drivers.md.
package peer
