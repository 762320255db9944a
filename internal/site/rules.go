package main

import (
	"html/template"
	"slices"
	"strings"

	"jobwire/catalog"
	"jobwire/codec"
	"jobwire/conform"
)

// rule is a rule with its tests.
type rule struct {
	conform.RuleCoverage
	protocol *codec.Protocol
}

func (s *site) readRules() error {
	s.rules = map[string]*rule{}
	for _, e := range catalog.All() {
		suite, err := conform.Load(e.Protocol)
		if err != nil {
			return err
		}
		all, err := conform.Coverage(suite)
		if err != nil {
			return err
		}
		for _, r := range all {
			s.rules[string(r.ID)] = &rule{r, e.Protocol}
		}
	}
	return nil
}

// rulePath returns the path of the page of a rule. Its address without index.html is that of jobwire's reports.
func rulePath(id string) string { return "rules/" + id + "/index.html" }

// writeRules writes a page for each rule, and the table of all rules.
func (s *site) writeRules() error {
	t := &table{Caption: "All rules", Columns: []column{{Name: "Protocol", Filter: true, Minor: true}, {Name: "Level", Filter: true}, {Name: "Rule"}}}
	for i, e := range catalog.All() {
		for _, declared := range e.Protocol.Rules {
			r := s.rules[string(declared.ID)]
			if err := s.writeRule(r); err != nil {
				return err
			}
			t.Rows = append(t.Rows, row{ID: string(r.ID), Cells: []cell{
				{Text: e.Protocol.Title, Order: i + 1}, levelCell(r.Level),
				{Text: string(r.ID), URL: string(r.ID) + "/index.html", Note: r.Text}}})
		}
	}
	body, err := t.html()
	if err != nil {
		return err
	}
	intro := `<p>A rule is one requirement of the specification of a protocol, or an interpretation where the specification is silent.
jobwire checks it, and names it in its reports. The ID of a rule never changes. <a href="../docs/levels.html">Levels of rules</a> explains the levels.</p>`
	return s.write(&page{path: "rules/index.html", Title: "Rules", Summary: "The requirements that jobwire checks",
		Body: template.HTML(intro) + body, Script: "table.js"})
}

func levelCell(l codec.Level) cell {
	return cell{Text: string(l), Order: slices.Index(codec.Levels, l) + 1}
}

func (s *site) writeRule(r *rule) error {
	id := string(r.ID)
	data := struct {
		*rule
		Protocol        *codec.Protocol
		Cases, Messages []string
		Findings        []link
	}{rule: r, Protocol: r.protocol}
	for _, name := range r.TestedBy {
		if vector, found := strings.CutPrefix(name, "reject:"); found {
			data.Messages = append(data.Messages, vector)
		} else {
			data.Cases = append(data.Cases, name)
		}
	}
	slices.Sort(data.Cases)
	data.Cases = slices.Compact(data.Cases)
	for _, f := range s.ordered() {
		if slices.Contains(f.rules, id) {
			data.Findings = append(data.Findings, link{"../../findings/" + f.id + "/index.html", f.title})
		}
	}
	var b strings.Builder
	if err := layout.ExecuteTemplate(&b, "rule.html", data); err != nil {
		return err
	}
	p := &page{path: rulePath(id), Title: id, Summary: r.Text, Body: template.HTML(b.String()), Up: link{"rules/index.html", "Rules"}}
	p.sought = []sectionOf{{Page: "Rule " + id, Text: r.Text + " " + r.Reading}}
	return s.write(p)
}
