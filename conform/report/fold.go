package report

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"jobwire/conform"
	"jobwire/internal/verdict"
)

// Fold returns one result for each case: the result of the first instance with the worst verdict,
// and the values of the instances for each verdict. The results of the instances of a case must be adjacent.
func Fold(results []conform.Result) []conform.Result {
	var all []conform.Result
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

// foldOne returns the result of a case from those of its instances: the first result with the worst verdict, the total
// time, and the parameter values for each verdict.
func foldOne(instances []conform.Result) conform.Result {
	worst := instances[0]
	for _, r := range instances {
		if r.Verdict.Severity() > worst.Verdict.Severity() {
			worst = r
		}
	}
	if len(instances) == 1 {
		return worst
	}
	worst.Instances = len(instances)
	worst.Took = 0
	var parts []string
	for _, row := range slices.Backward(bySeverity) {
		if values := valuesWith(instances, row.Verdict); values != "" {
			parts = append(parts, fmt.Sprintf("%s with %s", row.Verdict, values))
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

// valuesWith returns a list of the values of the instances with a verdict: ranges such as "n from 255, also 1 and 2"
// for a parameter that is a number, and else the values of consecutive instances as "A to B".
func valuesWith(instances []conform.Result, v verdict.Verdict) string {
	numbers := numbersOf(instances)
	name := ""
	if numbers != nil {
		order := make([]int, len(instances))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int { return numbers[a].Cmp(numbers[b]) })
		sorted := make([]conform.Result, len(instances))
		for i, k := range order {
			sorted[i] = instances[k]
		}
		name, instances = instances[0].Case.Params[0].Name, sorted
	}
	var runs []span
	for i := 0; i < len(instances); i++ {
		if instances[i].Verdict != v {
			continue
		}
		first := i
		for i+1 < len(instances) && instances[i+1].Verdict == v {
			i++
		}
		runs = append(runs, span{first, i})
	}
	if len(runs) > 0 && numbers != nil {
		return name + " " + numberRanges(instances, runs)
	}
	var texts []string
	for _, r := range runs {
		text := instances[r.first].Case.Values()
		if r.last > r.first {
			text += " to " + instances[r.last].Case.Values()
		}
		texts = append(texts, text)
	}
	return strings.Join(atMost(texts, maxRuns), ", ")
}

// span is a number of consecutive instances: the indexes of the first and the last of them.
type span struct{ first, last int }

// numbersOf returns the value of the only parameter of each instance, or nil if it is not a number.
func numbersOf(instances []conform.Result) (all []*big.Int) {
	for _, r := range instances {
		if len(r.Case.Params) != 1 {
			return nil
		}
		n, ok := new(big.Int).SetString(r.Case.Params[0].Label, 10)
		if !ok {
			return nil
		}
		all = append(all, n)
	}
	return all
}

// numberRanges describes runs of instances in the order of their numbers, the longest first: "from 255, also 1 and 2".
func numberRanges(instances []conform.Result, runs []span) string {
	label := func(i int) string { return instances[i].Case.Params[0].Label }
	slices.SortStableFunc(runs, func(a, b span) int { return (b.last - b.first) - (a.last - a.first) })
	texts := make([]string, len(runs))
	for k, r := range runs {
		switch first, last := label(r.first), label(r.last); {
		case r.first == r.last:
			texts[k] = first
		case r.last == r.first+1:
			texts[k] = first + " and " + last
		case r.last == len(instances)-1 && r.first > 0:
			texts[k] = "from " + first
		case r.first == 0 && r.last < len(instances)-1:
			texts[k] = "up to " + last
		default:
			texts[k] = first + " to " + last
		}
	}
	texts = atMost(texts, maxRuns)
	if len(texts) == 1 {
		return texts[0]
	}
	return texts[0] + ", also " + strings.Join(texts[1:], ", ")
}

// atMost replaces the texts after the first n by their number.
func atMost(texts []string, n int) []string {
	if more := len(texts) - n; more > 0 {
		return append(texts[:n:n], fmt.Sprintf("%d more", more))
	}
	return texts
}
