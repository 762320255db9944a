// Package audit checks the traffic between clients, workers and a server against the rules of the protocol, message by
// message.
//
// An [Auditor] checks, and a [Proxy] forwards the traffic of programs to a server. [Stress] has drivers perform the same
// tasks again and again, under fault profiles that are legal and that libraries often handle wrong.
package audit
