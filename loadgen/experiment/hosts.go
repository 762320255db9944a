package experiment

import (
	"slices"
	"strconv"

	"jobwire/loadgen/report"
)

// host is a machine on which one or several shares ran.
type host struct {
	parts      []*report.Report
	processors int     // number of processors that its load generators may use
	generators float64 // number of processors that its load generators kept busy
}

// machinesOf returns the machines of the shares. Shares without a boot ID count as one machine each.
func machinesOf(parts []*report.Report) (all []*host) {
	byID := map[string]*host{}
	for i, p := range parts {
		id := strconv.Itoa(i)
		if p.Environment != nil && p.Environment.BootID != "" {
			id = p.Environment.BootID
		}
		if byID[id] == nil {
			byID[id] = &host{}
			all = append(all, byID[id])
		}
		m := byID[id]
		m.parts = append(m.parts, p)
		m.processors += p.Processors
		if p.Environment != nil {
			m.processors = min(m.processors, p.Environment.Processors)
		}
		if p.Cores.Generator != nil {
			m.generators += *p.Cores.Generator
		}
	}
	return all
}

// shareNotes returns the warnings of each share, without those that the merged report has itself. The load generators
// of other shares on the same machine do not count as other programs.
func shareNotes(parts []*report.Report, merged []string) map[*report.Report][]string {
	all := map[*report.Report][]string{}
	for _, m := range machinesOf(parts) {
		for _, p := range m.parts {
			r := *p
			if r.Cores.Foreign != nil && r.Cores.Generator != nil {
				others := max(0, *r.Cores.Foreign-(m.generators-*r.Cores.Generator))
				r.Cores.Foreign = &others
			}
			all[p] = slices.DeleteFunc(r.Notes(), func(note string) bool { return slices.Contains(merged, note) })
		}
	}
	return all
}
