package main

import (
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	findingsFile = "docs/findings.md"
	findingsPage = "findings/index.html"
)

// finding is a section of docs/findings.md below an anchor.
type finding struct {
	id, title, text string
	program, about  string // the heading above it, and the text below this heading
	severity, kind  string
	order           int      // of the severity and kind
	rules           []string // that the server breaks, the most important first
}

var (
	findingHead = regexp.MustCompile(`(?m)^<a id="([a-z0-9-]+)"></a>\n#### (.+)\n`)
	findingKind = regexp.MustCompile(`(?m)^\| (critical|high|medium|low) \| \[([^]]+)\]\(#([^)]+)\) \|`)
	findingRule = regexp.MustCompile("`([a-z]+\\.[a-z0-9.-]+)`")
	nextHeading = regexp.MustCompile(`(?m)^##?#? `)
	fence       = regexp.MustCompile("(?ms)^```.*?^```$")
)

func findingPath(id string) string { return "findings/" + id + "/index.html" }

// readFindings reads the page of findings: their texts, and their severities from the lists.
func (s *site) readFindings() error {
	src, err := os.ReadFile(filepath.Join(s.root, findingsFile))
	if err != nil {
		return err
	}
	text := string(src)
	blank := func(code string) string { return strings.Repeat(" ", len(code)) }
	bare := fence.ReplaceAllStringFunc(text, blank) // a comment in a transcript is not a heading
	s.findings = map[string]*finding{}
	heads := findingHead.FindAllStringSubmatchIndex(text, -1)
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		if next := nextHeading.FindStringIndex(bare[h[1]:end]); next != nil {
			end = h[1] + next[0]
		}
		f := &finding{id: text[h[2]:h[3]], title: text[h[4]:h[5]], text: text[h[1]:end]}
		above, _, _ := strings.Cut(text[strings.LastIndex(bare[:h[0]], "\n### ")+5:], "<a id=")
		f.program, f.about, _ = strings.Cut(above, "\n")
		for _, m := range findingRule.FindAllStringSubmatch(f.text, -1) {
			if s.rules[m[1]] != nil && !slices.Contains(f.rules, m[1]) {
				f.rules = append(f.rules, m[1])
			}
		}
		s.findings[f.id] = f
	}
	for order, m := range findingKind.FindAllStringSubmatch(text, -1) {
		_, list, found := strings.Cut(text, "\n### "+m[2]+"\n")
		list, _, _ = strings.Cut(list, "\n##")
		for id, f := range s.findings {
			if found && strings.Contains(list, "| ["+id+"](#") {
				f.severity, f.kind, f.order = m[1], m[2], order+1
			}
		}
	}
	for id, f := range s.findings {
		if f.severity == "" {
			return fmt.Errorf("%s: %s has no severity", findingsFile, id)
		}
	}
	return nil
}

// ordered returns the findings by severity, then by program.
func (s *site) ordered() []*finding {
	var all []*finding
	for _, f := range s.findings {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *finding) int {
		if a.order != b.order {
			return a.order - b.order
		}
		return strings.Compare(a.id, b.id)
	})
	return all
}

// writeFindings writes a page for each finding, and the table of all findings in place of the lists.
func (s *site) writeFindings() error {
	t := &table{Caption: "All findings", Columns: []column{{Name: "Severity", Filter: true}, {Name: "Finding"},
		{Name: "Program", Filter: true}, {Name: "Kind", Filter: true, Minor: true}, {Name: "Level", Filter: true, Minor: true}}}
	for _, f := range s.ordered() {
		level := cell{Text: "none", Order: 99}
		if len(f.rules) > 0 {
			level = levelCell(s.rules[f.rules[0]].Level)
		}
		t.Rows = append(t.Rows, row{ID: f.id, Cells: []cell{{Text: f.severity, Order: f.order, Class: "severity " + f.severity},
			{Text: f.title, URL: f.id + "/index.html"}, {Text: f.program}, {Text: f.kind, Order: f.order}, level}})
		if err := s.writeFinding(f); err != nil {
			return err
		}
	}
	src, err := os.ReadFile(filepath.Join(s.root, findingsFile))
	if err != nil {
		return err
	}
	start, rest, _ := strings.Cut(string(src), "\n## How to read a finding\n")
	reading, rest, _ := strings.Cut(rest, "\n## Findings by program\n")
	lists, rest, found := strings.Cut(rest, "\n## Versions tested\n")
	rest, programs, _ := strings.Cut(rest, "\n## Servers\n")
	if !found {
		return fmt.Errorf("%s: expected the headings before and after the lists", findingsFile)
	}
	p, err := s.render(findingsFile, findingsPage,
		[]byte(start+"\n\n## All findings\n\n## How to read a finding\n"+reading+"\n## Versions tested\n"+rest))
	if err != nil {
		return err
	}
	body, err := t.html()
	if err != nil {
		return err
	}
	// The table stands for the lists and the sections, whose anchors lead to it.
	var anchors strings.Builder
	headings := regexp.MustCompile(`(?m)^##?#? (.*)$`)
	for _, m := range headings.FindAllStringSubmatch("## Findings by program\n"+lists+"\n## Servers\n"+fence.ReplaceAllString(programs, ""), -1) {
		fmt.Fprintf(&anchors, `<span id="%s"></span>`, slug(m[1]))
	}
	const heading = "<h2 id=\"all-findings\">All findings</h2>\n"
	p.Body = template.HTML(strings.Replace(string(p.Body), heading, heading+anchors.String()+string(body), 1))
	p.Script = "table.js"
	return s.write(p)
}

func (s *site) writeFinding(f *finding) error {
	text := f.text
	if strings.TrimSpace(f.about) != "" {
		text += "\n## " + f.program + "\n" + f.about
	}
	p, err := s.render(findingsFile, findingPath(f.id), []byte(text))
	if err != nil {
		return err
	}
	p.Title, p.Summary, p.Parts, p.Up = f.title, f.program+": "+f.title, nil, link{findingsPage, "Findings"}
	p.Body = template.HTML(fmt.Sprintf(`<p class="facts"><span class="severity %s">%[1]s</span> <span>%s</span> <span>%s</span> <code>%s</code></p>`,
		f.severity, template.HTMLEscapeString(f.kind), template.HTMLEscapeString(f.program), f.id)) + p.Body +
		`<p><a href="../index.html#how-to-replay-a-transcript">How to replay a transcript</a></p>`
	p.sought = p.sought[:1]
	p.sought[0].Page = f.title + " (" + f.program + ")"
	return s.write(p)
}
