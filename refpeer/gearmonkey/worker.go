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

// Handler works on a job: t holds its Function, ID and Input, which are valid
// until it returns. The output, or else the text of the error, is reported to the
// server. A panic is an error, too.
//
// Under Work, ctx does not end: a job that was begun is finished.
type Handler func(ctx context.Context, t *Task) (output []byte, err error)

// Worker works on jobs, over one connection. It is not safe for concurrent use.
//
// With several functions each has its round in turn, whether or not the round
// before brought a job, so that a busy function does not keep the others waiting.
// A round is that of the document, so one without a job takes a second, and a job
// may wait for as many seconds as there are functions. To ask for all of them at
// once would not be in the document's form.
type Worker struct {
	// After is as a Client's. The step "work" is the handler's.
	After func(step string)

	Limit int  // Work ends after so many jobs of its own; 0 is no limit
	Idle  bool // Work ends once a round of each function, one after the other, brought no job
	Done  int  // jobs that were worked on and reported, also those that failed

	performer performer
	task      Task
	functions []string
	entered   []string // those whose count this worker stands in
	turn      int

	load, enter, look, work, update, leave cycle
}

// NewWorker makes a worker of a connection, which stays the caller's. A nil
// program is the document's.
func NewWorker(c *Conn, p *Program) *Worker {
	if p == nil {
		p = Document()
	}
	w := &Worker{performer: performer{conn: c},
		load: p.Load.compile(), enter: p.Enter.compile(), look: p.Look.compile(),
		work: p.Work.compile(), update: p.Update.compile(), leave: p.Leave.compile()}
	w.task.Script = []byte(protocol.Script)
	return w
}

// Accept adds a function to those that the next Start registers.
func (w *Worker) Accept(function string) {
	if !slices.Contains(w.functions, function) {
		w.functions = append(w.functions, function)
	}
}

// Work registers the worker, works until ctx, Limit or Idle ends it, and
// deregisters it. The end of ctx is looked at between rounds; what was begun is
// finished, and so is a round that waits, as it may yet bring a job. Only
// [Conn.Abort] ends Work at once.
//
// Work returns nil after a clean exit. An error ends it, too; if the connection
// is still good then, the worker is deregistered first.
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

// Start loads the script and registers the worker for its functions. Start, Round
// and Exit are what Work is made of. They wait for the server under ctx, whose end
// in the meantime ends the use of the connection.
func (w *Worker) Start(ctx context.Context) error {
	if len(w.functions) == 0 {
		return fmt.Errorf("%w: the worker has no functions", ErrUsage)
	}
	if err := w.perform(ctx, w.load); err != nil {
		return err
	}
	for _, fn := range w.functions {
		w.task.begin(fn)
		if err := w.perform(ctx, w.enter); err != nil {
			return err
		}
		w.entered = append(w.entered, fn)
	}
	return nil
}

// Round looks for a job of the function whose turn it is, which may take a second,
// and works on it. found tells whether there was one.
func (w *Worker) Round(ctx context.Context, handle Handler) (found bool, err error) {
	fn := w.functions[w.turn%len(w.functions)]
	w.turn++
	t := &w.task
	t.begin(fn)
	t.Date = strconv.AppendInt(t.Date[:0], time.Now().Unix(), 10)
	if err := w.perform(ctx, w.look); err != nil || len(t.ID) == 0 {
		return false, err
	}
	t.handle = handle
	err = w.perform(ctx, w.work)
	t.handle = nil
	if err == nil {
		w.Done++
	}
	return true, err
}

// Update reports how much of the job is done: dividend of divisor. It is for the
// handler, which must call it before it returns.
func (w *Worker) Update(ctx context.Context, dividend, divisor uint64) error {
	t := &w.task
	if t.handle == nil {
		return fmt.Errorf("%w: the worker has no job", ErrUsage)
	}
	t.Dividend = strconv.AppendUint(t.Dividend[:0], dividend, 10)
	t.Divisor = strconv.AppendUint(t.Divisor[:0], divisor, 10)
	return w.perform(ctx, w.update)
}

// Exit deregisters the worker, once for each function that it was registered
// for. On a connection that is of no use it does nothing.
func (w *Worker) Exit(ctx context.Context) error {
	var all error
	for _, fn := range w.entered {
		if w.performer.conn.Err() != nil {
			break
		}
		w.task.begin(fn)
		all = errors.Join(all, w.perform(ctx, w.leave))
	}
	w.entered = nil
	return all
}

func (w *Worker) perform(ctx context.Context, c cycle) error {
	w.performer.after = w.After
	return w.performer.perform(ctx, c, &w.task)
}

// protect makes an error of a handler's panic.
func protect(ctx context.Context, t *Task) (output []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			output, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	return t.handle(ctx, t)
}

// finish keeps what became of a job.
func (t *Task) finish(output []byte, err error) {
	t.Status, t.Output = append(t.Status[:0], protocol.StatusSuccess...), append(t.Output[:0], output...)
	if err != nil {
		t.Status, t.Output = append(t.Status[:0], protocol.StatusError...), append(t.Output[:0], err.Error()...)
	}
}
