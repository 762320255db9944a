// Package loadgen puts servers of job queues under load and measures them. A [Run] connects clients and
// workers that perform a [Scenario]. It reports whether each job was processed exactly once and unchanged, and
// how long each stage of the jobs took.
//
// # Clients and workers
//
// Clients and workers follow from the message types of the protocol: which type submits a job, which asks for
// one, which ends it. An [Adapter] adds what they do not say.
//
// # Measurement
//
// Each connection has a goroutine. It reads, handles all messages that have arrived, and then writes once. The
// clock is read once for each batch of messages; no memory is allocated for a job.
//
// In a closed loop each client keeps as many jobs in flight as its window allows, and
// latency counts from the submission. In an open loop jobs are submitted by a schedule, whether or
// not the server keeps up, and latency counts from the scheduled time. Jobs that have not ended
// when the run is interrupted are counted as unfinished.
//
// # Accounting
//
// The payload of a job holds its number, a checksum, and filler that follows from the number,
// so that a payload that is changed, mixed up or delivered to the wrong client is noticed. [Account] says what is
// counted.
package loadgen
