// Package loadgen generates load for job queue servers and measures them. A [Run] connects clients and workers that
// perform a [Scenario]. The run reports whether each job was processed exactly once and with an intact payload, how
// many jobs per second the server processed, and how long each of the [Stages] of the jobs took.
//
// # Clients and workers
//
// Most of what clients and workers do is derived from the message types of the protocol: which type submits a job,
// which asks for a job, which completes it. An [Adapter] adds what the message types do not define.
//
// # Measurement
//
// Each connection has one goroutine. It reads, handles all messages that have arrived, and then writes once. It reads
// the clock once for each batch of messages, and allocates no memory for a job.
//
// In a closed loop, each client keeps as many jobs in flight as its window allows, and the latency of a job counts
// from its submission. In an open loop, jobs are submitted according to a [Schedule], even if the server does not
// keep up, and the latency counts from the scheduled time. If the run is interrupted, jobs in flight count as
// unfinished, not as lost.
//
// # Accounting
//
// The payload of a job contains its number, a checksum, and content that depends on the number, so that the run
// detects payloads that the server changed, exchanged or sent to the wrong client. [Account] lists the counters.
package loadgen
