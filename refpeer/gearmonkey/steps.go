package gearmonkey

import (
	"bytes"
	"context"
	"slices"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
)

// The replies that steps know.
var (
	rowError    = reply("error")
	rowSimple   = reply("simple")
	rowInteger  = reply("integer")
	rowBulk     = reply("bulk")
	rowNil      = reply("nil")
	rowNilArray = reply("nil-array")
	rowList     = reply("list")
	rowID       = reply("ID")
	rowSHA1     = reply("SHA1")
	rowDue      = reply("DUE")
	rowPopped   = reply("POPPED")
	rowUnlocked = reply("UNLOCKED")
	rowJob      = reply("JOB")
)

func reply(name string) *codec.Type { return codec.Named(protocol.Protocol.Types, name) }

// When steps are due.

func rollCall(t *Task) bool    { return t.RollCall }
func blocking(t *Task) bool    { return t.Blocking }
func scheduled(t *Task) bool   { return string(t.Priority) == protocol.Scheduled }
func unscheduled(t *Task) bool { return !scheduled(t) }
func without(t *Task) bool     { return len(t.ID) == 0 } // no job was found yet

// What replies must be.

func saysOK(_ *Task, m *codec.Message) error {
	if m.Type != rowSimple || string(m.Args[0]) != "OK" {
		return unexpected(m)
	}
	return nil
}

func counts(_ *Task, m *codec.Message) error {
	if m.Type != rowInteger {
		return unexpected(m)
	}
	return nil
}

// registered ends a roll call. A count below 0 is no better than 0: the document
// asks for an error on 0 in its text, and on what is not 1 or more in its listing.
func registered(_ *Task, m *codec.Message) error {
	if m.Type != rowBulk {
		return ErrNothingRegistered
	}
	if n, bad := codec.ParseNumber(m.Args[0]); bad >= 0 || n == 0 {
		return ErrNothingRegistered
	}
	return nil
}

func takeNewID(t *Task, m *codec.Message) error {
	if m.Type != rowID {
		return ErrNoID
	}
	t.takeID(m.Args[0])
	return nil
}

// takeID keeps an ID, which m.Args hold until the next reply only.
func (t *Task) takeID(id []byte) { t.ID = append(t.ID[:0], id...) }

func unlocked(_ *Task, m *codec.Message) error {
	switch m.Type {
	case rowUnlocked:
		return nil
	case rowNilArray, rowNil:
		return ErrTimedOut
	}
	return unexpected(m)
}

func takeJob(t *Task, m *codec.Message) error {
	switch m.Type {
	case rowJob:
	case rowList:
		if len(m.Args) == 0 {
			break
		}
		fallthrough
	default:
		return unexpected(m)
	}
	t.Job = Job{}
	for pair := range slices.Chunk(m.Args, 2) {
		t.Job.Fields = append(t.Job.Fields, Field{string(pair[0]), string(pair[1])})
	}
	return nil
}

func takeSHA1(t *Task, m *codec.Message) error {
	if m.Type != rowSHA1 {
		return unexpected(m)
	}
	t.SHA1 = append(t.SHA1[:0], m.Args[0]...)
	return nil
}

// takeDue and takePopped keep the ID of a job, which must come from a queue of the function that the worker asked for.
var takeDue, takePopped = taken(rowDue), taken(rowPopped)

func taken(row *codec.Type) func(*Task, *codec.Message) error {
	return func(t *Task, m *codec.Message) error {
		switch {
		case m.Type == rowNil || m.Type == rowNilArray:
			return nil
		case m.Type != row || !bytes.Equal(m.Args[0], t.Function):
			return unexpected(m)
		}
		t.takeID(m.Args[len(m.Args)-1])
		return nil
	}
}

// takeInput keeps the input. A job without one has ceased to be, or never was.
func takeInput(t *Task, m *codec.Message) error {
	switch m.Type {
	case rowBulk:
		t.Input = append(t.Input[:0], m.Args[0]...)
		return nil
	case rowNil:
		t.lost = true
		return nil
	}
	return unexpected(m)
}

// work lets the handler work on the job, if there is something to work on.
func work(ctx context.Context, t *Task) error {
	if t.lost {
		t.finish(nil, errNoInput)
	} else {
		t.finish(protect(ctx, t))
	}
	return nil
}
