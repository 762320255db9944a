package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"jobwire/internal/prose"
	"jobwire/loadgen"
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
	loadgen.Share
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
	return fmt.Sprintf("%s: %s in %.2f s, %s jobs/s", s.name(), prose.Count(s.Jobs, "job"), s.Seconds, FormatJobs(s.Rate))
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
