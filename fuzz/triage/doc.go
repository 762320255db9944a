// Package triage examines the failures that the workers of the fuzzer observe.
//
// An observation is a [Candidate]: a fault with the log of the server. Its signature is what is known before the failure
// is reproduced, and decides which observations are examined. An examiner runs the log, or its last entries, on new
// servers and reduces it by delta debugging: first to the inputs that the fault needs, then to the messages, arguments
// and bytes. A fault that appears again, and not on a correct server, is a [Finding]; a crash is a finding even if it
// does not appear again. The key and the cause of a finding are decided on the minimized input: findings with the same
// key are duplicates, and those with the same cause are one group.
package triage
