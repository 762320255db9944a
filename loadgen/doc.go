// Package loadgen drives job queues and measures them. A [Run] connects clients and
// workers, has them do what a [Scenario] says, and tells of every job whether it came
// through whole, how often it ran, and how long each stage of its life took.
//
// # How it measures
//
// Each connection has a goroutine. It reads, handles all messages that have come, and
// writes once what came of them, so the cost of a job is that of its bytes. The clock is
// read once for each batch; nothing is allocated for a job.
//
// In a closed loop each client keeps as many jobs under way as its window allows, and
// latency counts from the submission. In an open loop jobs are due by a schedule, whether or
// not the server keeps up, and latency counts from when they were due. What has not ended
// when the run does is told as censored, not left out.
//
// # How it accounts
//
// A job's payload holds its number, a check of it, and filler that follows from the number,
// so that a payload that is changed, mixed up or delivered to somebody else is noticed. See
// [Account] for what is counted.
package loadgen
