package watch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"jobwire/internal/target"
)

// Limits of the check of costs.
const (
	costFactor = 4 // how many times as much a command may cost with many jobs, queues or connections as with few

	costLeast = 250 * time.Microsecond // a sample counts as at least this much
	costNone  = 10 * time.Microsecond  // less than any program needs for the commands of a sample
)

// ErrNoCost is returned if the process of a target uses too little processor time for a check of costs.
var ErrNoCost = errors.New("the process that jobwire started uses almost no processor time for the commands, " +
	"so their cost cannot be compared: another process may execute them")

// costs are the samples of a conversation.
type costs struct {
	all  []sample
	open bool // the last sample has not ended
}

// sample is the processor time that a server has used for some commands.
type sample struct {
	name string
	size int           // how many jobs, queues or connections the server had
	cost time.Duration // while the sample is open: the processor time at its beginning, negated
}

// AtSample ends a sample and begins another one. An empty name begins none.
func (w *Watcher) AtSample(name string, size int) {
	now := processorTime(target.Pid(w.target))
	if w.costs.open {
		w.costs.all[len(w.costs.all)-1].cost += now
	}
	if w.costs.open = name != ""; w.costs.open {
		w.costs.all = append(w.costs.all, sample{name, size, -now})
	}
}

// check returns the first name whose samples cost too much at the largest size. It compares the cheapest of them with
// the median at the smallest size, because other programs and a garbage collection can make samples more expensive,
// but not cheaper.
func (c *costs) check() (amiss string, err error) {
	var checked []string
	for _, s := range c.all {
		if slices.Contains(checked, s.name) {
			continue
		}
		checked = append(checked, s.name)
		bySize := map[int][]time.Duration{}
		small, large := s.size, s.size
		for _, o := range c.all {
			if o.name == s.name {
				bySize[o.size] = append(bySize[o.size], o.cost)
				small, large = min(small, o.size), max(large, o.size)
			}
		}
		slices.Sort(bySize[small])
		least, median := slices.Min(bySize[large]), bySize[small][len(bySize[small])/2]
		if slices.Max(bySize[large]) < costNone {
			err = ErrNoCost
		}
		if small < large && least > costFactor*max(costLeast, median) {
			return fmt.Sprintf("the processor time of %q grows: at least %v in each of %d samples at size %d, and a median of %v "+
				"in %d samples at size %d; the limit is %d times as much", s.name, least.Round(10*time.Microsecond),
				len(bySize[large]), large, median.Round(10*time.Microsecond), len(bySize[small]), small, costFactor), nil
		}
	}
	return "", err
}
