// Package danga contains the reference application and the reference worker of the Danga draft: a program of package
// peer that sends the message types of codec/danga, and can be edited. [Document] has no deliberate fault;
// refpeer/danga/mutants contains programs with faults.
//
// An application waits for one job of type 0 at a time, because the messages that the server sends about such a job do
// not contain its handle. A worker cannot distinguish a noop that is the reply to job_assign_req from one that wakes
// it. It sends worker_sleep after a noop that arrives while it is awake, and job_assign_req after one that arrives
// while it sleeps, and accepts a job at any time.
package danga
