// This program is a driver of github.com/beanstalkd/go-beanstalk. Usage: go-beanstalk-driver HOST:PORT
package main

import (
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

var conn *beanstalk.Conn // nil: not connected

func main() { serve(tasks, connect, code) }

func connect() (err error) {
	if conn == nil {
		conn, err = beanstalk.Dial("tcp", os.Args[1])
	}
	return err
}

func tube(name string) *beanstalk.Tube { return beanstalk.NewTube(conn, name) }

func tubes(names string) *beanstalk.TubeSet {
	return beanstalk.NewTubeSet(conn, strings.Split(names, ",")...)
}

const forever = 1 << 30 // seconds; Reserve has no form without a timeout

var tasks = map[string]task{
	"put": {2, func(w []string, o options) ([]any, error) {
		body := []byte(w[1])
		if _, ok := o["nil"]; ok {
			body = nil
		}
		id, err := tube(w[0]).Put(body, uint32(o.number("pri", 0)), o.seconds("delay", 0), o.seconds("ttr", 60))
		return []any{id}, err
	}},
	"reserve": {1, func(w []string, o options) ([]any, error) {
		id, body, err := tubes(w[0]).Reserve(o.seconds("timeout", forever))
		return []any{id, body}, err
	}},
	"delete": {1, func(w []string, o options) ([]any, error) { return nil, conn.Delete(number(w[0])) }},
	"release": {1, func(w []string, o options) ([]any, error) {
		return nil, conn.Release(number(w[0]), uint32(o.number("pri", 0)), o.seconds("delay", 0))
	}},
	"bury":  {1, func(w []string, o options) ([]any, error) { return nil, conn.Bury(number(w[0]), 0) }},
	"touch": {1, func(w []string, o options) ([]any, error) { return nil, conn.Touch(number(w[0])) }},
	"peek": {1, func(w []string, o options) ([]any, error) {
		body, err := conn.Peek(number(w[0]))
		return []any{body}, err
	}},
	"kick": {2, func(w []string, o options) ([]any, error) {
		n, err := tube(w[0]).Kick(int(number(w[1])))
		return []any{uint64(n)}, err
	}},
	"pause": {2, func(w []string, o options) ([]any, error) {
		return nil, tube(w[0]).Pause(time.Duration(number(w[1])) * time.Second)
	}},
	"stats": {1, func(w []string, o options) ([]any, error) {
		s, err := conn.StatsJob(number(w[0]))
		return []any{s["state"], s["tube"]}, err
	}},
	"work": {3, work},
}

func work(w []string, _ options) ([]any, error) {
	finish := map[string]func(id uint64) error{
		"delete":  conn.Delete,
		"release": func(id uint64) error { return conn.Release(id, 0, 0) },
		"bury":    func(id uint64) error { return conn.Bury(id, 0) },
		"touch":   func(id uint64) error { return errors.Join(conn.Touch(id), conn.Delete(id)) },
	}[w[1]]
	if finish == nil {
		return nil, errUsage
	}
	jobs, wait := number(w[2]), forever*time.Second
	if jobs == 0 {
		wait = 0
	}
	for done := uint64(0); ; done++ {
		if jobs > 0 && done == jobs {
			return []any{done}, nil
		}
		id, _, err := tubes(w[0]).Reserve(wait)
		if jobs == 0 && errors.Is(err, beanstalk.ErrTimeout) {
			return []any{done}, nil
		}
		if err == nil {
			err = finish(id)
		}
		if err != nil {
			return nil, err
		}
	}
}

var codes = map[error]string{
	beanstalk.ErrTimeout: "timed-out", beanstalk.ErrDeadline: "deadline-soon", beanstalk.ErrNotFound: "not-found",
	beanstalk.ErrJobTooBig: "too-big", beanstalk.ErrDraining: "server", beanstalk.ErrBadFormat: "server",
	beanstalk.ErrUnknown: "server", beanstalk.ErrInternal: "server", beanstalk.ErrOOM: "server",
}

// code returns the error code of docs/drivers.md for an error. It closes a connection that has failed.
func code(err error) string {
	var failed beanstalk.ConnError
	var network net.Error
	switch isConn := errors.As(err, &failed); {
	case isConn && codes[failed.Err] != "":
		return codes[failed.Err]
	case isConn:
		conn.Close()
		conn = nil
		return "connection"
	case errors.As(err, &network): // from Dial
		return "connection"
	}
	return "other"
}
