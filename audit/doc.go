// Package audit checks the traffic between clients, workers and a server against the rules of the protocol, message by
// message.
//
// An [Auditor] checks messages, and a [Proxy] forwards the traffic of programs to a server. [Stress] makes drivers
// perform the same tasks repeatedly under fault profiles, which are legal behavior that libraries often handle
// incorrectly.
package audit
