// Package beanstalk is the reference client of Beanstalk: a program of package peer that sends the message types of
// codec/beanstalk, and can be edited. [Document] has no deliberate fault; refpeer/beanstalk/mutants contains clients
// with one fault each.
//
// The client performs all tasks over one connection, and connects again after this connection has failed. It reads the
// reply to each request before it sends the next one. It sends release, bury and touch only for jobs that it has
// reserved on this connection. [Options] select other behavior that the protocol allows.
package beanstalk
