package main

import (
	"encoding/json"
	"html"
	"os"
	"regexp"
	"strings"
)

// grammar is the TextMate grammar of transcripts in editors/vscode, which editors use too. Of the constructs of such grammars
// it may use "match", "include", "captures", and "begin" with the end "$". Expressions have the syntax of package regexp.
type grammar struct {
	Patterns   []*pattern
	Repository map[string]*pattern
}

type pattern struct {
	Name, Include, Match, Begin, End string

	Captures, BeginCaptures map[string]*pattern
	Patterns                []*pattern

	expr *regexp.Regexp
}

// span is a part of a line with its innermost scope, such as string.quoted.double.wire.
type span struct {
	from, to int
	scope    string
}

// readGrammar reads a grammar from a file.
func readGrammar(file string) (*grammar, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	g := &grammar{}
	if err := json.Unmarshal(src, g); err != nil {
		return nil, err
	}
	err = compile(g.Patterns)
	for _, p := range g.Repository {
		if err == nil {
			err = compile([]*pattern{p})
		}
	}
	return g, err
}

func compile(all []*pattern) (err error) {
	for _, p := range all {
		if source := p.Match + p.Begin; source != "" {
			if p.expr, err = regexp.Compile(source); err != nil {
				return err
			}
		}
		for _, captures := range []map[string]*pattern{p.Captures, p.BeginCaptures} {
			for _, c := range captures {
				if err := compile(c.Patterns); err != nil {
					return err
				}
			}
		}
		if err := compile(p.Patterns); err != nil {
			return err
		}
	}
	return nil
}

// line returns the spans of a line, without its line end.
func (g *grammar) line(text string) []span { return g.scan(nil, text, 0, g.Patterns, "source.wire") }

// scan appends the spans of text[at:]. Text that no pattern matches has the given scope.
func (g *grammar) scan(spans []span, text string, at int, patterns []*pattern, scope string) []span {
	for at < len(text) {
		p, m := g.first(nil, nil, text, at, patterns)
		if p == nil {
			break
		}
		spans = add(spans, at, m[0], scope)
		inner := scope
		if p.Name != "" {
			inner = p.Name
		}
		captures := p.Captures
		if p.Begin != "" {
			captures = p.BeginCaptures
		}
		spans = g.captured(spans, text, m, captures, inner)
		at = m[1]
		if p.Begin != "" {
			return g.scan(spans, text, at, p.Patterns, inner)
		}
	}
	return add(spans, at, len(text), scope)
}

// captured appends the spans of a match m with its captures, which do not overlap.
func (g *grammar) captured(spans []span, text string, m []int, captures map[string]*pattern, scope string) []span {
	if c := captures["0"]; c != nil {
		return g.scan(spans, text[:m[1]], m[0], c.Patterns, scope)
	}
	at := m[0]
	for i := 1; i < len(m)/2; i++ {
		c, from, to := captures[string(rune('0'+i))], m[2*i], m[2*i+1]
		if c == nil || from < 0 {
			continue
		}
		spans = add(spans, at, from, scope)
		spans = g.scan(spans, text[:to], from, c.Patterns, c.Name)
		at = to
	}
	return add(spans, at, m[1], scope)
}

// first returns the pattern whose match begins first in text[at:], and the positions of the match in text. best and found are
// those of earlier patterns.
func (g *grammar) first(best *pattern, found []int, text string, at int, patterns []*pattern) (*pattern, []int) {
	for _, p := range patterns {
		switch {
		case p.Include != "":
			best, found = g.first(best, found, text, at, []*pattern{g.Repository[p.Include[1:]]})
		case p.expr == nil:
			best, found = g.first(best, found, text, at, p.Patterns)
		case at == 0 || !strings.HasPrefix(p.expr.String(), "^"):
			m := p.expr.FindStringSubmatchIndex(text[at:])
			if m == nil || m[0] == m[1] || best != nil && at+m[0] >= found[0] {
				continue
			}
			for i := range m {
				if m[i] >= 0 {
					m[i] += at
				}
			}
			best, found = p, m
		}
	}
	return best, found
}

// add appends a span, and joins it to the one before it if both have the same scope.
func add(spans []span, from, to int, scope string) []span {
	switch n := len(spans); {
	case from == to:
		return spans
	case n > 0 && spans[n-1].scope == scope:
		spans[n-1].to = to
		return spans
	}
	return append(spans, span{from, to, scope})
}

// classes are the classes of the style sheet, by the beginning of a scope. Other text is not marked.
var classes = []struct{ scope, class string }{
	{"comment", "c"}, {"keyword.operator", "o"}, {"keyword", "k"}, {"storage", "k"}, {"entity.name.type", "a"},
	{"entity.name", "m"}, {"support", "m"}, {"entity.other", "c"}, {"constant.character", "e"}, {"string.unquoted.prose", "c"},
	{"constant", "n"}, {"variable", "v"}, {"string", "s"}, {"invalid", "x"},
}

// html returns a transcript as HTML.
func (g *grammar) html(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		for _, s := range g.line(bare) {
			part := html.EscapeString(bare[s.from:s.to])
			for _, c := range classes {
				if strings.HasPrefix(s.scope, c.scope) {
					part = `<span class="` + c.class + `">` + part + "</span>"
					break
				}
			}
			b.WriteString(part)
		}
		b.WriteString(line[len(bare):])
	}
	return b.String()
}
