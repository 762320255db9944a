package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"jobwire/internal/version"
)

const grammarFile = "editors/vscode/syntaxes/wire.tmLanguage.json"

//go:embed assets
var assets embed.FS

var layout = template.Must(template.New("layout.html").ParseFS(assets, "assets/*.html"))

// page is a page of the site.
type page struct {
	path    string // of the file in the site, with slashes
	Title   string
	Summary string
	Body    template.HTML
	Up      link        // the list to which the page belongs, if any
	Parts   []link      // the sections
	Script  string      // the script that the page needs, if any
	sought  []sectionOf // what the search finds
}

// link is a link with an address relative to its page.
type link struct{ URL, Text string }

// sectionOf is an entry of the search: a section of a page.
type sectionOf struct {
	Page    string `json:"p"`
	Heading string `json:"h,omitempty"`
	URL     string `json:"u"`
	Text    string `json:"t"`
}

// site collects the files of the site.
type site struct {
	root     string // folder of the repository
	grammar  *grammar
	files    map[string][]byte
	index    []sectionOf
	rules    map[string]*rule
	findings map[string]*finding
	queue    []string // Markdown files to be rendered
	queued   map[string]bool
}

// build returns the files of the site, by their paths with slashes.
func build(root string) (map[string][]byte, error) {
	s := &site{root: root, files: map[string][]byte{}, queued: map[string]bool{}}
	for _, step := range []func() error{s.readGrammar, s.readRules, s.readFindings, s.copyDocs, s.writePages, s.writeFindings, s.writeRules, s.writeSearch} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return s.files, nil
}

func (s *site) readGrammar() (err error) {
	s.grammar, err = readGrammar(filepath.Join(s.root, grammarFile))
	return err
}

// copyDocs copies the files of docs that are not Markdown, and the style sheet and the scripts.
func (s *site) copyDocs() error {
	err := fs.WalkDir(os.DirFS(s.root), "docs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasSuffix(name, ".md") {
			if name != findingsFile {
				s.enqueue(name)
			}
			return nil
		}
		s.files[name], err = os.ReadFile(filepath.Join(s.root, name))
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"style.css", "search.js", "table.js"} {
		if s.files[name], err = assets.ReadFile("assets/" + name); err != nil {
			return err
		}
	}
	return s.adaptMatrix("docs/matrix.html")
}

// adaptMatrix makes the links of the page about all servers lead to the pages of the findings, and adds a link to the site.
func (s *site) adaptMatrix(name string) error {
	page := string(s.files[name])
	for id := range s.findings {
		page = strings.ReplaceAll(page, `href="findings.md#`+id+`"`, `href="../findings/`+id+`/index.html"`)
	}
	if strings.Contains(page, "findings.md") {
		return fmt.Errorf("%s: a link to a finding that does not exist", name)
	}
	s.files[name] = []byte(strings.Replace(page, "<body>\n", "<body>\n<p><a href=\"../index.html\">jobwire</a> / <a href=\"../findings/index.html\">findings</a></p>\n", 1))
	return nil
}

// enqueue adds a Markdown file to the pages.
func (s *site) enqueue(name string) {
	if !s.queued[name] {
		s.queued[name] = true
		s.queue = append(s.queue, name)
	}
}

// writePages renders the Markdown files, and those that they link to.
func (s *site) writePages() error {
	s.enqueue("README.md")
	for len(s.queue) > 0 {
		name := s.queue[0]
		s.queue = s.queue[1:]
		src, err := os.ReadFile(filepath.Join(s.root, name))
		if err != nil {
			return err
		}
		p, err := s.render(name, pagePath(name), src)
		if err != nil {
			return err
		}
		if err := s.write(p); err != nil {
			return err
		}
	}
	return nil
}

// pagePath returns the path of the page for a Markdown file.
func pagePath(name string) string {
	base := strings.TrimSuffix(name, ".md")
	if path.Base(base) == "README" {
		return path.Join(path.Dir(base), "index.html")
	}
	return base + ".html"
}

// relative returns the address of one file of the site in a page.
func relative(from, to string) string {
	rel, err := filepath.Rel(filepath.Dir(filepath.FromSlash(from)), filepath.FromSlash(to))
	if err != nil {
		panic(err)
	}
	return filepath.ToSlash(rel)
}

// write adds a page to the files, and its sections to the search.
func (s *site) write(p *page) error {
	if _, twice := s.files[p.path]; twice {
		return fmt.Errorf("two pages have the path %s", p.path)
	}
	var b bytes.Buffer
	err := layout.Execute(&b, struct {
		*page
		Page       string
		To         func(string) string
		Nav        []link
		Repository string
	}{p, p.path, func(to string) string { return relative(p.path, to) }, []link{{"docs/index.html", "Documentation"},
		{"findings/index.html", "Findings"}, {"docs/matrix.html", "Servers"}, {"rules/index.html", "Rules"}}, version.Repository})
	s.files[p.path] = b.Bytes()
	for _, part := range p.sought {
		part.URL = p.path + part.URL
		s.index = append(s.index, part)
	}
	return err
}

// table is a table that a script sorts and filters.
type table struct {
	Caption string
	Columns []column
	Rows    []row
}

type column struct {
	Name   string
	Filter bool // the reader can select one of its values
	Minor  bool // left out on narrow screens
}

type row struct {
	ID    string
	Cells []cell
}

type cell struct {
	Text, URL, Note string
	Order           int    // by which a column is sorted, if its texts are not sorted alphabetically
	Class           string // of the text
}

func (t *table) html() (template.HTML, error) {
	var b strings.Builder
	err := layout.ExecuteTemplate(&b, "table.html", t)
	return template.HTML(b.String()), err
}

// writeSearch writes the page of the search, and what it finds as a script, because a page cannot read other files of a folder.
func (s *site) writeSearch() error {
	index, err := json.Marshal(s.index)
	if err != nil {
		return err
	}
	s.files["search-index.js"] = append(append([]byte("const searchIndex = "), index...), ';', '\n')
	form, err := assets.ReadFile("assets/search.html")
	if err != nil {
		return err
	}
	return s.write(&page{path: "search.html", Title: "Search", Body: template.HTML(form), Script: "search.js"})
}
