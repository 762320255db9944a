package gearmonkey

import (
	"errors"
	"fmt"

	"jobwire/codec"
	"jobwire/refpeer/internal/line"
)

var (
	// ErrNothingRegistered is the end of a roll call: the count of the function's workers is 0 or
	// less, or no integer. No job was created.
	ErrNothingRegistered = errors.New("no worker is registered for the function")
	// ErrNoID says that the server gave no ID. No job was created.
	ErrNoID = errors.New("the server did not return a job ID")
	// ErrTimedOut says that a job was created, but did not end while its client waited.
	ErrTimedOut = errors.New("the job did not end in time")
	// ErrUsage is matched by the errors of calls, and of commands, that cannot be
	// carried out. They are not sent.
	ErrUsage = line.ErrUsage

	errNoInput = errors.New("the job has no input") // a worker's output
)

// StepError says at which step of a sequence something went wrong.
type StepError struct {
	Step string // its name: that of the command's row
	Err  error
}

func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }

func (e *StepError) Unwrap() error { return e.Err }

// RedisError is a reply that says no, or one that does not fit its command.
type RedisError struct {
	Code string // the first word of the server's error; "" if the reply is none
	Text string // the whole of it, or the reply as it was
}

func (e *RedisError) Error() string { return "the server answered " + e.Text }

// unexpected makes an error of a reply that does not fit its command.
func unexpected(m *codec.Message) error {
	return &RedisError{Text: fmt.Sprintf("%s %.200q", m.Type.Name, m.Args)}
}

// refusal makes an error of the server's own.
func refusal(m *codec.Message) error {
	e := &RedisError{Code: string(m.Args[0])}
	e.Text = e.Code
	for _, a := range m.Args[1:] {
		e.Text += " " + string(a)
	}
	return e
}
