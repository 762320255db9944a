package loadgen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jobwire/internal/prose"
)

// Merged describes the shares of which [Merge] made a report.
type Merged struct {
	Run      string        `json:"run"`      // ID of the run, see RunID
	Shares   int           `json:"shares"`   // number of shares of the load
	Machines int           `json:"machines"` // number of machines on which the shares ran
	Missing  []int         `json:"missing"`  // indices of the shares without a result
	Parts    []MergedShare `json:"parts"`    // the shares with a result, by index
	LeftOut  []string      `json:"left_out"` // files that are not in the report, each with the reason
}

// MergedShare is one share of a merged report.
type MergedShare struct {
	Share
	Host        string    `json:"host"`    // host name of the load generator; "": not known
	Started     time.Time `json:"started"` // start of the measured part, in UTC
	Seconds     float64   `json:"seconds"` // length of the measured part
	Jobs        int64     `json:"jobs"`    // jobs that ended in the measured part
	Rate        float64   `json:"rate"`    // Jobs / Seconds
	Interrupted bool      `json:"interrupted"`
	Notes       []string  `json:"notes"` // warnings about the figures of this share
}

// name returns "share 1 (HOST)".
func (s *MergedShare) name() string {
	text := fmt.Sprintf("share %d", s.Index)
	if s.Host != "" {
		text += " (" + s.Host + ")"
	}
	return text
}

// Text describes the share in one line.
func (s *MergedShare) Text() string {
	return fmt.Sprintf("%s: %s in %.2f s, %s jobs/s", s.name(), prose.Count(s.Jobs, "job"), s.Seconds, formatJobs(s.Rate))
}

// Summary names the run, the number of machines, and the shares that are missing.
func (m *Merged) Summary() string {
	text := fmt.Sprintf("%d of %s of run %s, on %s", len(m.Parts), prose.Count(m.Shares, "share"), m.Run,
		prose.Count(m.Machines, "machine"))
	if len(m.Missing) > 0 {
		text += "; missing: " + m.missing()
	}
	return text
}

// missing lists the missing shares, as "share 1" or "shares 1, 3".
func (m *Merged) missing() string {
	var all []string
	for _, i := range m.Missing {
		all = append(all, strconv.Itoa(i))
	}
	text := "share "
	if len(all) > 1 {
		text = "shares "
	}
	return text + strings.Join(all, ", ")
}

// incomplete returns why the report does not cover the whole load. m may be nil.
func (m *Merged) incomplete() (why []string) {
	if m == nil {
		return nil
	}
	if len(m.Missing) > 0 {
		why = append(why, fmt.Sprintf("the results of %s of %d are missing, so the figures are those of a smaller load",
			m.missing(), m.Shares))
	}
	for i := range m.Parts {
		if s := &m.Parts[i]; s.Interrupted {
			why = append(why, fmt.Sprintf("%s was interrupted after %.2f s", s.name(), s.Seconds))
		}
	}
	return why
}

// notes returns the warnings of all shares.
func (m *Merged) notes() (all []string) {
	for i := range m.Parts {
		for _, note := range m.Parts[i].Notes {
			all = append(all, m.Parts[i].name()+": "+note)
		}
	}
	return all
}

// text writes the list of shares.
func (m *Merged) text(b *strings.Builder) {
	lines := []string{m.Summary()}
	for i := range m.Parts {
		lines = append(lines, m.Parts[i].Text())
	}
	for _, file := range m.LeftOut {
		lines = append(lines, "left out: "+file)
	}
	for _, line := range lines {
		b.WriteString(prose.Wrap("  ", "    ", line, prose.Width) + "\n")
	}
}

// host is a machine on which one or several shares ran.
type host struct {
	parts      []*Report
	processors int     // number of processors that its load generators may use
	generators float64 // number of processors that its load generators kept busy
}

// machinesOf returns the machines of the shares. Shares without a boot ID count as one machine each.
func machinesOf(parts []*Report) (all []*host) {
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
func shareNotes(parts []*Report, merged []string) map[*Report][]string {
	all := map[*Report][]string{}
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
