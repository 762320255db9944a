// Package mutants contains Beanstalk clients with one deliberate fault each. They prove that jobwire audit finds faults
// of clients: a fault that it does not find is a gap in it.
//
// A mutant is the reference client with an edited program. It is listed with the rule that it violates, or with the
// fault profile under which it fails and the expected verdict.
package mutants

import (
	"embed"
	"math"
	"strconv"

	"jobwire/internal/mutant"
	"jobwire/refpeer/beanstalk"
	"jobwire/refpeer/internal/faults"
)

//go:embed *.yaml
var rows embed.FS

var kit = &faults.Kit{
	Document: beanstalk.Document,
	Rows:     rows,
	Functions: map[string]any{
		"id_of_32_bits": changedID(func(id uint64) string { return strconv.FormatUint(uint64(uint32(id)), 10) }),
		"signed_id":     changedID(func(id uint64) string { return strconv.FormatUint(min(id, math.MaxInt64), 10) }),
		"float_id":      changedID(func(id uint64) string { return strconv.FormatFloat(float64(id), 'f', 0, 64) }),
		"latin1_as_utf8": func(s string) (utf8 string) {
			for _, b := range []byte(s) {
				utf8 += string(rune(b))
			}
			return utf8
		},
	},
}

func changedID(change func(id uint64) string) func(string) string {
	return func(s string) string {
		id, _ := strconv.ParseUint(s, 10, 64)
		return change(id)
	}
}

// All returns the mutants.
func All() []mutant.Mutant { return kit.Mutants("Client") }
