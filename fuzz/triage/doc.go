// Package triage examines the failures that the workers of the fuzzer observe.
//
// An observation is a [Candidate]: a fault with the log of the server. Its signature is what is known before the
// failure is reproduced: what fails, after which message, in which state of the jobs and peers. Each signature is
// examined, and none is dropped: those that wait at the end of the run, and those that were not reproduced, are
// reported as candidates. An examiner runs the log, or its last entries, on new servers and reduces it by delta
// debugging: first to the inputs that the fault needs, then to the messages, arguments and bytes. A fault that appears
// again, and not on a correct server, is a [Finding]; a crash is a finding even if it does not appear again. The cause
// of a finding is decided on the minimized input: findings with the same key are duplicates, and those with the same
// cause are one group.
package triage
