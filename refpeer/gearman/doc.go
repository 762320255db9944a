// Package gearman contains the reference client and the reference worker of Gearman: a program of package peer that
// sends the message types of codec/gearman, and can be edited. [Document] has no deliberate fault;
// refpeer/gearman/mutants contains programs with faults.
//
// They accept messages in any segmentation, ignore messages that the specification allows a server to send at that
// time, and do not wait for a message that can no longer arrive: the end of the connection and ERROR end a wait for a
// reply.
package gearman
