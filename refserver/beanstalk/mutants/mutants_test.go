package mutants

import (
	"testing"

	protocol "jobwire/codec/beanstalk"
	"jobwire/conform"
	"jobwire/conform/mutanttest"
	"jobwire/refserver/inject"
)

// TestTable checks that the table is complete and consistent.
func TestTable(t *testing.T) {
	mutanttest.Table(t, mutanttest.Suite(t, protocol.Protocol, ""), All(), 12, func(i int) error { return System.Check(&all()[i]) })
}

// TestSomeMutants runs a few mutants of every kind. An edit that changes nothing must not fail a case.
func TestSomeMutants(t *testing.T) {
	sound := conform.Baseline{Start: System.Mutants([]mutantSpec{{Name: "none", Edit: func(*inject.Server) {}}})[0].Start}
	mutanttest.RunSample(t, mutanttest.Suite(t, protocol.Protocol, ""), sound, All(), []string{
		"first-reply-overtaken",           // a fault
		"lf-ends-a-line",                  // a waived rule
		"line-of-223",                     // a limit
		"body-before-a-pipeline-cut-off",  // another decoder
		"cr-at-the-limit-ends-a-line",     // another way to read from the connection
		"endless-line-ends-the-server",    // a server that crashes
		"extra-name-ignored",              // an illegal message accepted as legal
		"reserve-does-not-hold",           // a command that does not wait
		"ready-counted-urgent",            // other statistics
		"jobs-lost-with-their-worker",     // at the end of a connection
		"release-does-not-wake",           // the cause for which a worker is woken
		"released-into-the-used-tube",     // other commands for the machine
		"idle-client-greeted",             // a timer of the edit
		"half-close-unnoticed",            // after the end of a direction
		"others-reserved-not-described",   // the record of a job
		"unknown-with-argument-malformed", // another error
		"tube-survives-its-jobs",          // deleted objects
		"sign-of-a-time-dropped",          // a malformed put
		"past-of-a-tube-not-seen",         // the last reply to a peer
		"delayed-peeked-as-put",           // another order
	}, []string{"beanstalk.pipeline.*", "beanstalk.life.*"})
}
