package conform

import (
	"time"

	"jobwire/codec/transcript"
	"jobwire/play"
)

// maxDelayShare limits the scheduling delay of this machine relative to the time for which an expectation waits: if the
// delay is longer than that time divided by maxDelayShare, the wait proves nothing.
const maxDelayShare = 4

// timed returns the duration on which a failure depends: the time limit that was exceeded or, if there is none, the
// shortest silence or delay in the steps up to the failure. It returns 0 if there is none. An invalid message does not
// depend on time.
func timed(script *transcript.Script, f *play.Failure) time.Duration {
	shortest := f.Waited
	if shortest > 0 || f.Rule() != "" {
		return shortest
	}
	note := func(d time.Duration) {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	for _, st := range script.Steps[:min(f.Index+1, len(script.Steps))] {
		note(st.After)
		for _, c := range st.Choices {
			note(c.For)
		}
	}
	return shortest
}
