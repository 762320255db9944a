package gearmonkey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	protocol "jobwire/codec/gearmonkey"
)

// Handler performs a job. The Function, ID and Input of t are valid until it returns. The worker reports the output, or the
// text of the error, to the server. A panic is an error, too.
//
// During Work, ctx does not end: a job that was started is finished.
type Handler func(ctx context.Context, t *Task) (output []byte, err error)

// Worker performs jobs, over one connection. It is not safe for concurrent use.
//
// A worker with several functions polls them in turn, whether or not the previous round returned a job, so that a busy
// function does not delay the others. Each round sends the commands of the specification, so a round without a job takes a
// second, and a job may wait for as many seconds as there are functions. The commands of the specification cannot poll
// several functions at once.
type Worker struct {
	Limit int  // Work ends after this number of jobs of its own; 0: no limit
	Idle  bool // Work ends after one consecutive round per function without a job
	Done  int  // the number of jobs that were performed and reported, including failed ones

	conn      *Conn
	program   *Program
	task      Task
	functions []string
	entered   []string // functions for which this worker has incremented the count
	turn      int
}

// NewWorker returns a worker that uses a connection. The caller closes the connection. A nil program means [Document].
func NewWorker(c *Conn, p *Program) *Worker {
	if p == nil {
		p = Document()
	}
	return &Worker{conn: c, program: p, task: Task{Script: []byte(protocol.Script)}}
}

// Accept adds a function that the next Start registers.
func (w *Worker) Accept(function string) {
	if !slices.Contains(w.functions, function) {
		w.functions = append(w.functions, function)
	}
}

// Work registers the worker, performs jobs until ctx, Limit or Idle ends the loop, and deregisters the worker. It checks
// ctx only between rounds: a round that has started, including its wait for a job, is finished. Only [Conn.Abort] ends Work
// at once.
//
// Work returns nil after a clean exit. After an error, it deregisters the worker if the connection can still be used.
func (w *Worker) Work(ctx context.Context, handle Handler) error {
	shielded := context.WithoutCancel(ctx)
	err := w.Start(shielded)
	if err == nil {
		err = w.loop(ctx, shielded, handle)
	}
	return errors.Join(err, w.Exit(shielded))
}

func (w *Worker) loop(ctx, shielded context.Context, handle Handler) error {
	idle, before := 0, w.Done
	for ctx.Err() == nil {
		found, err := w.Round(shielded, handle)
		switch {
		case err != nil:
			return err
		case found:
			idle = 0
		default:
			idle++
		}
		if w.Limit > 0 && w.Done-before >= w.Limit || w.Idle && idle >= len(w.functions) {
			break
		}
	}
	return nil
}

// Start loads the script and registers the worker for its functions. Work consists of Start, Round and Exit. If ctx ends
// while one of them waits for the server, the connection must not be used again.
func (w *Worker) Start(ctx context.Context) error {
	if len(w.functions) == 0 {
		return fmt.Errorf("%w: the worker has no functions", ErrUsage)
	}
	if err := w.conn.perform(ctx, w.program.Load, &w.task); err != nil {
		return err
	}
	for _, fn := range w.functions {
		w.task.begin(fn)
		if err := w.conn.perform(ctx, w.program.Enter, &w.task); err != nil {
			return err
		}
		w.entered = append(w.entered, fn)
	}
	return nil
}

// Round gets a job of the next function, which may take a second, and performs it. found reports whether there was a job.
func (w *Worker) Round(ctx context.Context, handle Handler) (found bool, err error) {
	fn := w.functions[w.turn%len(w.functions)]
	w.turn++
	t := &w.task
	t.begin(fn)
	t.Date = strconv.AppendInt(nil, time.Now().Unix(), 10)
	if err := w.conn.perform(ctx, w.program.Look, &w.task); err != nil || len(t.ID) == 0 {
		return false, err
	}
	t.handle = handle
	if err = w.conn.perform(ctx, w.program.Work, t); err == nil {
		w.Done++
	}
	return true, err
}

// Update reports the progress of the job: dividend of divisor. The handler may call it before it returns.
func (w *Worker) Update(ctx context.Context, dividend, divisor uint64) error {
	t := &w.task
	t.Dividend = strconv.AppendUint(nil, dividend, 10)
	t.Divisor = strconv.AppendUint(nil, divisor, 10)
	return w.conn.perform(ctx, w.program.Update, &w.task)
}

// Exit deregisters the worker, once for each function for which it was registered. If the connection cannot be used any
// more, Exit does nothing.
func (w *Worker) Exit(ctx context.Context) error {
	var all error
	for _, fn := range w.entered {
		if w.conn.err != nil {
			break
		}
		w.task.begin(fn)
		all = errors.Join(all, w.conn.perform(ctx, w.program.Leave, &w.task))
	}
	w.entered = nil
	return all
}

// callHandler calls the handler and turns a panic into an error.
func callHandler(ctx context.Context, t *Task) (output []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			output, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	return t.handle(ctx, t)
}

// finish sets the status and the output of a job.
func (t *Task) finish(output []byte, err error) {
	t.Status, t.Output = []byte(protocol.StatusSuccess), output
	if err != nil {
		t.Status, t.Output = []byte(protocol.StatusError), []byte(err.Error())
	}
}

// begin resets a task for a job of the function.
func (t *Task) begin(function string) {
	t.Function, t.ID, t.Input, t.lost = []byte(function), nil, nil, false
}
