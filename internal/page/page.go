// Package page has what all HTML reports share: the head element with the style sheet, and the header with the verdict.
// A page is one file that refers to no other file.
package page

import (
	_ "embed"
	"html/template"
	"time"

	"jobwire/internal/version"
)

//go:embed page.html
var source string

//go:embed style.css
var style string

// Head is the data of the template "head". It writes the head element and the header of the page, and ends inside of
// the body.
type Head struct {
	Title   string // of the browser window and the page
	Verdict string // the result in one line; "" if the page has no single result
	Tone    string // class of the verdict: good, fair, bad, none, or ""
	Target  string // command or address of the tested program, or ""
	Began   time.Time
	Facts   []string // what else is necessary to repeat the run
	Jobwire version.Info
	Style   template.CSS // what only this page needs
}

// Date returns the time at which the run began in UTC, or "" if it is not known.
func (h Head) Date() string {
	if h.Began.IsZero() {
		return ""
	}
	return h.Began.UTC().Format("2006-01-02 15:04:05 UTC")
}

// New returns a template with the functions, in which "head" is defined. Parse the text of a page with it.
func New(funcs template.FuncMap) *template.Template {
	t := template.New("page").Funcs(funcs).Funcs(template.FuncMap{"style": func() template.CSS { return template.CSS(style) }})
	return template.Must(t.Parse(source))
}
