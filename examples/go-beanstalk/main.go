// This program is a driver of github.com/beanstalkd/go-beanstalk. Usage: go-beanstalk-driver HOST:PORT
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/beanstalkd/go-beanstalk"
)

var addr, conn = "", (*beanstalk.Conn)(nil)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go-beanstalk-driver HOST:PORT")
		os.Exit(2)
	}
	addr = os.Args[1]
	// The library can wait forever. Without cgo, the Go runtime would then end the program, except if it has a timer.
	time.AfterFunc(time.Hour, func() {})
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		fmt.Println(answer(splitWords(line)))
	}
}

var errUsage = errors.New("usage")

// answer performs one task and returns its answer.
func answer(words []string) string {
	task := tasks[words[0]]
	if task.do == nil {
		return "error unsupported"
	}
	if len(words) <= task.words {
		return "error usage"
	}
	if conn == nil {
		c, err := beanstalk.Dial("tcp", addr)
		if err != nil {
			return "error connection " + quote(err.Error())
		}
		conn = c
	}
	results, err := task.do(words[1:], options(words[task.words+1:]))
	if err != nil {
		return "error " + code(err) + " " + quote(err.Error())
	}
	out := "ok"
	for _, r := range results {
		out += " " + quote(r)
	}
	return out
}

type opts map[string]uint64

func (o opts) or(name string, value uint64) uint64 {
	if v, ok := o[name]; ok {
		return v
	}
	return value
}

func (o opts) seconds(name string, value uint64) time.Duration {
	return time.Duration(o.or(name, value)) * time.Second
}

// tasks contains the tasks by name, with their minimum numbers of arguments.
var tasks = map[string]struct {
	words int
	do    func(w []string, o opts) ([]string, error)
}{
	"put": {2, func(w []string, o opts) ([]string, error) {
		id, err := beanstalk.NewTube(conn, w[0]).Put([]byte(w[1]), uint32(o.or("pri", 0)), o.seconds("delay", 0),
			o.seconds("ttr", 60))
		return []string{number(id)}, err
	}},
	"reserve": {1, func(w []string, o opts) ([]string, error) {
		id, body, err := watch(w[0]).Reserve(o.seconds("timeout", 1<<30))
		return []string{number(id), string(body)}, err
	}},
	"delete": {1, func(w []string, o opts) ([]string, error) { return nil, conn.Delete(id(w[0])) }},
	"release": {1, func(w []string, o opts) ([]string, error) {
		return nil, conn.Release(id(w[0]), uint32(o.or("pri", 0)), o.seconds("delay", 0))
	}},
	"bury":  {1, func(w []string, o opts) ([]string, error) { return nil, conn.Bury(id(w[0]), uint32(o.or("pri", 0))) }},
	"touch": {1, func(w []string, o opts) ([]string, error) { return nil, conn.Touch(id(w[0])) }},
	"peek": {1, func(w []string, o opts) ([]string, error) {
		body, err := conn.Peek(id(w[0]))
		return []string{string(body)}, err
	}},
	"kick": {2, func(w []string, o opts) ([]string, error) {
		n, err := beanstalk.NewTube(conn, w[0]).Kick(int(id(w[1])))
		return []string{strconv.Itoa(n)}, err
	}},
	"pause": {2, func(w []string, o opts) ([]string, error) {
		return nil, beanstalk.NewTube(conn, w[0]).Pause(time.Duration(id(w[1])) * time.Second)
	}},
	"stats": {1, func(w []string, o opts) ([]string, error) {
		s, err := conn.StatsJob(id(w[0]))
		return []string{s["state"], s["tube"]}, err
	}},
	"work": {3, work},
}

func work(w []string, o opts) ([]string, error) {
	finish := map[string]func(id uint64) error{
		"delete":  conn.Delete,
		"release": func(id uint64) error { return conn.Release(id, 0, 0) },
		"bury":    func(id uint64) error { return conn.Bury(id, 0) },
		"touch":   func(id uint64) error { return errors.Join(conn.Touch(id), conn.Delete(id)) },
	}[w[1]]
	if finish == nil {
		return nil, errUsage
	}
	jobs, wait := id(w[2]), time.Duration(1<<30)*time.Second
	if jobs == 0 {
		wait = 0
	}
	done := uint64(0)
	for jobs == 0 || done < jobs {
		id, _, err := watch(w[0]).Reserve(wait)
		if jobs == 0 && errors.Is(err, beanstalk.ErrTimeout) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := finish(id); err != nil {
			return nil, err
		}
		done++
	}
	return []string{number(done)}, nil
}

func watch(tubes string) *beanstalk.TubeSet {
	return beanstalk.NewTubeSet(conn, strings.Split(tubes, ",")...)
}

// code returns the error code of docs/drivers.md for an error. It closes a connection that has failed.
func code(err error) string {
	var refused beanstalk.ConnError
	for known, c := range map[error]string{
		errUsage: "usage", beanstalk.ErrTimeout: "timed-out", beanstalk.ErrDeadline: "deadline-soon",
		beanstalk.ErrNotFound: "not-found", beanstalk.ErrJobTooBig: "too-big",
		beanstalk.ErrDraining: "server", beanstalk.ErrBadFormat: "server", beanstalk.ErrUnknown: "server",
		beanstalk.ErrInternal: "server", beanstalk.ErrOOM: "server",
	} {
		if errors.Is(err, known) {
			return c
		}
	}
	if errors.As(err, &refused) {
		conn.Close()
		conn = nil
		return "connection"
	}
	return "other"
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func id(word string) uint64 {
	n, _ := strconv.ParseUint(word, 10, 64)
	return n
}

func options(words []string) opts {
	o := opts{}
	for _, w := range words {
		name, value, _ := strings.Cut(w, "=")
		o[name] = id(value)
	}
	return o
}
