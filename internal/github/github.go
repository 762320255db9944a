// Package github writes annotations as workflow commands of GitHub Actions
// (https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions).
package github

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Level is the level of an annotation.
type Level string

// The levels, the most severe one first.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Notice  Level = "notice"
)

// Annotation is a note on the page of a workflow run.
type Annotation struct {
	Level   Level
	Title   string
	Message string // may have several lines
}

// maxAnnotations is the number of annotations of one level that GitHub shows of a step.
const maxAnnotations = 10

// Report is the annotations of a run. The zero value has none.
type Report struct{ all []Annotation }

// Add adds an annotation. Those of one level are added in the order of their importance.
func (r *Report) Add(level Level, title string, lines ...string) {
	lines = slices.DeleteFunc(lines, func(s string) bool { return s == "" })
	r.all = append(r.all, Annotation{level, title, strings.Join(lines, "\n")})
}

// Write writes the annotations, errors first, and then the summary as a notice with the title. If there are more of a
// level than GitHub shows, the summary says how many.
func (r *Report) Write(w io.Writer, title, summary string) error {
	b := bufio.NewWriter(w)
	for _, level := range []Level{Error, Warning, Notice} {
		left := maxAnnotations
		if level == Notice {
			left-- // for the summary
		}
		more := 0
		for _, a := range r.all {
			switch {
			case a.Level != level:
			case left == 0:
				more++
			default:
				left--
				command(b, a)
			}
		}
		if more > 0 {
			summary += fmt.Sprintf("\nThere are %d more with the level %s.", more, level)
		}
	}
	command(b, Annotation{Notice, title, summary})
	return b.Flush()
}

// The characters that the syntax uses, in messages and in properties.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func command(w io.Writer, a Annotation) {
	fmt.Fprintf(w, "::%s title=%s::%s\n", a.Level, property.Replace(a.Title), message.Replace(a.Message))
}
