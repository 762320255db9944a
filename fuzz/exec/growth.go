package exec

// MinLeak is the size of the smallest leak that the fuzzer detects, in bytes for each execution of an input.
const MinLeak = 1 << 10

// Parameters of the search for memory leaks. A worker repeats a few inputs of the corpus together, in a warm-up and
// then in several rounds. If the memory grows, triage bisects: it repeats one half of the inputs on a new server, with
// the same total number of executions. With fewer different inputs, the leaking input is executed more often and adds
// more to the growth.
const (
	LeakInputs     = 8
	LeakWarmup     = 64 // executions of each input
	LeakRounds     = 6
	LeakExecutions = 64 // executions of each input in a round with LeakInputs inputs
)

// Growth contains the resident memory of a server, in bytes, after the warm-up and after each round. The memory does
// not grow evenly: allocators take memory in large pieces, and garbage collectors return some.
type Growth struct {
	At   []int64
	Runs int64 // number of executions of each input in a round
}

// of returns the growth since round i, in bytes.
func (g *Growth) of(i int) int64 { return g.At[len(g.At)-1] - g.At[i] }

// Ended reports whether the growth so far is less than half of the growth that a leak of MinLeak bytes in one of the
// inputs causes. Then there is no leak to detect.
func (g *Growth) Ended() bool {
	rounds := len(g.At) - 1
	return rounds > 1 && g.of(0) < int64(rounds)*g.Runs*MinLeak/2
}

// Leaks reports whether the rounds are complete and the memory has grown in both halves of the rounds.
func (g *Growth) Leaks() bool {
	half := len(g.At) / 2
	return len(g.At) == LeakRounds+1 && !g.Ended() && g.At[half] > g.At[0] &&
		g.of(half) >= int64(LeakRounds/2)*g.Runs*MinLeak/2
}
