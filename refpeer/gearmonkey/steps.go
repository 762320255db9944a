package gearmonkey

import (
	"bytes"
	"context"
	"slices"

	"jobwire/codec"
	protocol "jobwire/codec/gearmonkey"
)

// The types of the replies that steps check.
var (
	typeError     = reply("error")
	typeSimple    = reply("simple")
	typeInteger   = reply("integer")
	typeBulk      = reply("bulk")
	typeNil       = reply("nil")
	typeNilArray  = reply("nil-array")
	typeList      = reply("list")
	typeID        = reply("ID")
	typeSHA1      = reply("SHA1")
	typeScheduled = reply("DUE")
	typePopped    = reply("POPPED")
	typeUnlocked  = reply("UNLOCKED")
	typeJob       = reply("JOB")
)

func reply(name string) *codec.Type { return codec.Named(protocol.Protocol.Types, name) }

// Conditions of steps.

func rollCall(t *Task) bool    { return t.RollCall }
func blocking(t *Task) bool    { return t.Blocking }
func scheduled(t *Task) bool   { return string(t.Priority) == protocol.Scheduled }
func unscheduled(t *Task) bool { return !scheduled(t) }
func without(t *Task) bool     { return len(t.ID) == 0 } // no job was found yet

// Checks of replies.

func saysOK(_ *Task, m *codec.Message) error {
	if m.Type != typeSimple || string(m.Args[0]) != "OK" {
		return unexpected(m)
	}
	return nil
}

func counts(_ *Task, m *codec.Message) error {
	if m.Type != typeInteger {
		return unexpected(m)
	}
	return nil
}

// registered checks the reply to the roll call. It rejects a count below 0: the text of the specification requires an error
// for 0, its listing for all counts that are not 1 or more.
func registered(_ *Task, m *codec.Message) error {
	if m.Type != typeBulk {
		return ErrNothingRegistered
	}
	if n, bad := codec.ParseNumber(m.Args[0]); bad >= 0 || n == 0 {
		return ErrNothingRegistered
	}
	return nil
}

func takeNewID(t *Task, m *codec.Message) error {
	if m.Type != typeID {
		return ErrNoID
	}
	t.ID = bytes.Clone(m.Args[0])
	return nil
}

func unlocked(_ *Task, m *codec.Message) error {
	switch m.Type {
	case typeUnlocked:
		return nil
	case typeNilArray, typeNil:
		return ErrTimedOut
	}
	return unexpected(m)
}

func takeJob(t *Task, m *codec.Message) error {
	switch m.Type {
	case typeJob:
	case typeList:
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
	if m.Type != typeSHA1 {
		return unexpected(m)
	}
	t.SHA1 = bytes.Clone(m.Args[0])
	return nil
}

// takeScheduled and takePopped store the ID of a job. The reply must name a queue of the function that the worker requested.
var takeScheduled, takePopped = taken(typeScheduled), taken(typePopped)

func taken(msgType *codec.Type) func(*Task, *codec.Message) error {
	return func(t *Task, m *codec.Message) error {
		switch {
		case m.Type == typeNil || m.Type == typeNilArray:
			return nil
		case m.Type != msgType || !bytes.Equal(m.Args[0], t.Function):
			return unexpected(m)
		}
		t.ID = bytes.Clone(m.Args[len(m.Args)-1])
		return nil
	}
}

// takeInput stores the input of a job. There is none if the hash has expired or never existed.
func takeInput(t *Task, m *codec.Message) error {
	switch m.Type {
	case typeBulk:
		t.Input = bytes.Clone(m.Args[0])
		return nil
	case typeNil:
		t.lost = true
		return nil
	}
	return unexpected(m)
}

// work calls the handler, unless the job has no input.
func work(ctx context.Context, t *Task) error {
	if t.lost {
		t.finish(nil, errNoInput)
	} else {
		t.finish(callHandler(ctx, t))
	}
	return nil
}
