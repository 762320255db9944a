package conform

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"jobwire/codec/transcript"
)

// instanceLabel returns the part of the ID of an instance that follows the name of the case, such as "[n=64,body=nul]", or
// "".
func instanceLabel(params []transcript.Param) string {
	if len(params) == 0 {
		return ""
	}
	var all []string
	for _, p := range params {
		all = append(all, p.Name+"="+p.Label)
	}
	return "[" + strings.Join(all, ",") + "]"
}

// Names returns the names of the cases, without parameters, each once.
func (s *Suite) Names() []string {
	var all []string
	for _, c := range s.Cases {
		if n := len(all); n == 0 || all[n-1] != c.Family {
			all = append(all, c.Family)
		}
	}
	return all
}

// otherInstances is the number of additional instances, besides the first of each case, that run against a mutant which
// should pass them.
const otherInstances = 12

// forMutant returns the suite with the instances to run against a mutant: all instances of the cases that the mutant
// should fail, the first instance of each other case, and a few other instances, which differ between mutants.
func (s *Suite) forMutant(m *Mutant) *Suite {
	out := s.with()
	var others []*Case
	first := map[string]bool{}
	for _, c := range s.Cases {
		if c.Program == m.Role && !named(m, c) && first[c.Family] {
			others = append(others, c)
		}
		first[c.Family] = true
	}
	h := fnv.New32a()
	h.Write([]byte(m.Name))
	chosen := map[*Case]bool{}
	for k := range min(otherInstances, len(others)) {
		chosen[others[(int(h.Sum32()%uint32(len(others)))+k*len(others)/otherInstances)%len(others)]] = true
	}
	clear(first)
	for _, c := range s.Cases {
		if c.Program == m.Role && (named(m, c) || !first[c.Family] || chosen[c]) {
			out.Cases = append(out.Cases, c)
		}
		first[c.Family] = true
	}
	return out
}

// named reports whether the mutant should fail the case or the instance.
func named(m *Mutant, c *Case) bool {
	return slices.Contains(m.KilledBy, c.Family) || slices.Contains(m.KilledBy, c.ID)
}

// Fold returns one result for each case: the result of the first instance with the worst verdict,
// and the values of the instances for each verdict. The results of the instances of a case must be adjacent.
func Fold(results []Result) []Result {
	var all []Result
	for i := 0; i < len(results); {
		n := 1
		for i+n < len(results) && results[i+n].Case.Family == results[i].Case.Family {
			n++
		}
		all = append(all, foldOne(results[i:i+n]))
		i += n
	}
	return all
}

func foldOne(instances []Result) Result {
	worst := instances[0]
	for _, r := range instances {
		if rank(r.Verdict) > rank(worst.Verdict) {
			worst = r
		}
	}
	if len(instances) == 1 {
		return worst
	}
	worst.Instances = len(instances)
	worst.Took = 0
	var parts []string
	for _, l := range slices.Backward(styles) {
		if values := valuesWith(instances, l.Verdict); values != "" {
			parts = append(parts, fmt.Sprintf("%s with %s", l.Verdict, values))
		}
	}
	for _, r := range instances {
		worst.Took += r.Took
	}
	worst.Values = strings.Join(parts, "; ")
	return worst
}

// maxRuns is the maximum number of values, or ranges of values, that reports list.
const maxRuns = 8

// valuesWith returns a list of the values of the instances with a verdict. It combines consecutive instances to "A to
// B".
func valuesWith(instances []Result, v Verdict) string {
	var runs []string
	for i := 0; i < len(instances); i++ {
		if instances[i].Verdict != v {
			continue
		}
		last := i
		for last+1 < len(instances) && instances[last+1].Verdict == v {
			last++
		}
		run := values(instances[i].Case)
		if last > i {
			run += " to " + values(instances[last].Case)
		}
		runs = append(runs, run)
		i = last
	}
	if n := len(runs) - maxRuns; n > 0 {
		runs = append(runs[:maxRuns], fmt.Sprintf("%d more", n))
	}
	return strings.Join(runs, ", ")
}

// values returns the parameters of an instance, such as "n=64,body=nul".
func values(c *Case) string {
	return strings.Trim(instanceLabel(c.Params), "[]")
}

// First returns the suite with only the first instance of each case.
func (s *Suite) First() *Suite {
	out := s.with()
	for i, c := range s.Cases {
		if i == 0 || s.Cases[i-1].Family != c.Family {
			out.Cases = append(out.Cases, c)
		}
	}
	return out
}
