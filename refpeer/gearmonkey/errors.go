package gearmonkey

import (
	"errors"
	"fmt"

	"jobwire/codec"
	"jobwire/refpeer/internal/line"
)

var (
	// ErrNothingRegistered is the error of a failed roll call: the count of the function's workers does not exist, is not
	// an integer, or is 0 or less. No job was created.
	ErrNothingRegistered = errors.New("no worker is registered for the function")
	// ErrNoID is returned if the server did not return a job ID. No job was created.
	ErrNoID = errors.New("the server did not return a job ID")
	// ErrTimedOut is returned if a job was created but did not end before the client's timeout.
	ErrTimedOut = errors.New("the job did not end in time")
	// ErrUsage is matched by the errors of invalid calls and commands. Nothing was sent.
	ErrUsage = line.ErrUsage

	errNoInput = errors.New("the job has no input") // the output of such a job
)

// StepError is the error of one step of a sequence.
type StepError struct {
	Step string // the name of the step: that of the command's message type
	Err  error
}

func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }

func (e *StepError) Unwrap() error { return e.Err }

// RedisError is a Redis error, or a reply that is not valid for its command.
type RedisError struct {
	Code string // the first word of the Redis error; "" if the reply is not an error
	Text string // the whole error, or the type and arguments of the reply
}

func (e *RedisError) Error() string { return "the server answered " + e.Text }

// unexpected returns the error for a reply that is not valid for its command.
func unexpected(m *codec.Message) error {
	return &RedisError{Text: fmt.Sprintf("%s %.200q", m.Type.Name, m.Args)}
}

// refusal returns the error for a Redis error.
func refusal(m *codec.Message) error {
	e := &RedisError{Code: string(m.Args[0])}
	e.Text = e.Code
	for _, a := range m.Args[1:] {
		e.Text += " " + string(a)
	}
	return e
}
