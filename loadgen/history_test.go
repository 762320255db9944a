package loadgen

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

func (h *history) put(n uint64, call, ret int64) {
	h.ops = append(h.ops, operation{1, false, n, call, ret})
}
func (h *history) took(n uint64, call, ret int64) {
	h.ops = append(h.ops, operation{2, true, n, call, ret})
}

func newHistory() *history {
	return &history{name: func(id int) string { return fmt.Sprint("connection ", id) }}
}

// TestHistories tests that the check of a history accepts orders of submitted and taken jobs that a queue may produce,
// and describes the contradiction in all others.
func TestHistories(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(h *history)
		want string // part of the contradiction; "" if the history is linearizable
	}{
		"in order":                {func(h *history) { h.put(1, 0, 1); h.put(2, 2, 3); h.took(1, 4, 5); h.took(2, 6, 7) }, ""},
		"out of order":            {func(h *history) { h.put(1, 0, 1); h.put(2, 2, 3); h.took(2, 4, 5); h.took(1, 6, 7) }, "0x2 was submitted after job 0x1"},
		"submitted at once":       {func(h *history) { h.put(1, 0, 3); h.put(2, 1, 2); h.took(2, 4, 5); h.took(1, 6, 7) }, ""},
		"taken at once":           {func(h *history) { h.put(1, 0, 1); h.put(2, 2, 3); h.took(2, 4, 7); h.took(1, 5, 6) }, ""},
		"left behind":             {func(h *history) { h.put(1, 0, 1); h.put(2, 2, 3); h.took(2, 4, 5) }, "0x2 was submitted after job 0x1"},
		"taken twice":             {func(h *history) { h.put(1, 0, 1); h.took(1, 2, 3); h.took(1, 4, 5) }, "and to connection 2"},
		"never put":               {func(h *history) { h.took(1, 2, 3) }, "before it was submitted"},
		"taken before it was put": {func(h *history) { h.took(1, 0, 1); h.put(1, 2, 3) }, "before it was submitted"},
		"there, but not found":    {func(h *history) { h.put(1, 0, 1); h.took(none, 2, 3); h.took(1, 4, 5) }, "that no job is queued, although"},
		"not there yet":           {func(h *history) { h.took(none, 0, 3); h.put(1, 1, 2); h.took(1, 4, 5) }, ""},
		"always one there": {func(h *history) {
			h.put(1, 0, 1)
			h.put(2, 2, 3)
			h.took(1, 4, 8)
			h.took(none, 3, 7)
			h.took(2, 9, 10)
		}, "that no job is queued, although"},
	} {
		h := newHistory()
		c.is(h)
		got := h.check()
		if got.Holds != (c.want == "") || !strings.Contains(got.Why, c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// fifo is the model of a first-in, first-out queue for Porcupine. Its state is a string of the job numbers in the
// queue, eight bytes each.
var fifo = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, _ any) (bool, any) {
		queue, op := state.(string), input.(operation)
		number := string(binary.BigEndian.AppendUint64(nil, op.number))
		switch {
		case !op.take:
			return true, queue + number
		case op.number == none:
			return queue == "", queue
		}
		return strings.HasPrefix(queue, number), strings.TrimPrefix(queue, number)
	},
}

// TestHistoriesAgainstPorcupine tests that the check of random histories has the same results as Porcupine, which
// searches all possible orders.
func TestHistoriesAgainstPorcupine(t *testing.T) {
	t.Parallel()
	verdicts, histories := map[bool]int{}, uint64(20_000)
	if testing.Short() {
		histories = 5_000
	}
	for seed := range histories {
		h := randomHistory(rand.New(rand.NewPCG(seed, 0)))
		var ops []porcupine.Operation
		for i, op := range h.ops {
			ops = append(ops, porcupine.Operation{ClientId: i, Input: op, Call: op.call, Return: op.ret})
		}
		want, got := porcupine.CheckOperations(fifo, ops), h.check()
		if got.Holds != want {
			t.Fatalf("seed %d: %+v, but porcupine says %v: %+v", seed, got, want, h.ops)
		}
		verdicts[want]++
	}
	if least := int(histories / 20); verdicts[true] < least || verdicts[false] < least {
		t.Errorf("%d histories are of a queue and %d are not: that proves little", verdicts[true], verdicts[false])
	}
}

// randomHistory returns a history whose operations extend around the times of a correct queue. In half of the
// histories it then exchanges the times of two operations.
func randomHistory(r *rand.Rand) *history {
	h := newHistory()
	var queue []uint64
	last := uint64(0)
	for i := range int64(3 + r.IntN(7)) {
		at := 100 * (i + 1)
		op := operation{call: at - 1 - r.Int64N(250), ret: at + 1 + r.Int64N(250)}
		switch {
		case r.IntN(2) == 0:
			last++
			op.number = last
			queue = append(queue, last)
		case len(queue) > 0:
			op.take, op.number, queue = true, queue[0], queue[1:]
		default:
			op.take = true
		}
		h.ops = append(h.ops, op)
	}
	if r.IntN(2) == 0 {
		a, b := &h.ops[r.IntN(len(h.ops))], &h.ops[r.IntN(len(h.ops))]
		a.call, b.call, a.ret, b.ret = b.call, a.call, b.ret, a.ret
	}
	// Make all times different, because two operations at the same time can have either order.
	var times []*int64
	for i := range h.ops {
		times = append(times, &h.ops[i].call, &h.ops[i].ret)
	}
	slices.SortStableFunc(times, func(a, b *int64) int { return cmp.Compare(*a, *b) })
	for i, p := range times {
		*p = int64(i)
	}
	return h
}
