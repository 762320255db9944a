package report

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageSource string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"counted": counted,
	"number":  func(i int) int { return i + 1 },
	"seen":    (*Finding).seen,
	"what":    (*Finding).what,
	"brief":   (*Finding).brief,
	"symptom": (*Finding).symptom,
	"line":    oneLine,
	"output":  func(f *Finding) string { return strings.Join(f.lastOutput(maxPageOutput), "\n") },
	"stack":   func(f *Finding) string { return printable(strings.Join(f.Stack, "\n")) },
	"when":    func(r *Report) string { return r.Began.UTC().Format("2006-01-02 15:04 UTC") },
}).Parse(pageSource))

// WriteHTML writes one page without references to other files.
func WriteHTML(w io.Writer, r *Report) error { return page.Execute(w, r) }
