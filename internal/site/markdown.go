package main

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	renderhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"jobwire/internal/version"
)

// render converts a Markdown file to the page with the given path. name is the path of the file, to which its links are
// relative. The first heading becomes the title.
func (s *site) render(name, to string, src []byte) (*page, error) {
	p := &page{path: to}
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderhtml.WithUnsafe(), renderer.WithNodeRenderers(util.Prioritized(&codeRenderer{s, p, src}, 100))))
	doc := md.Parser().Parse(text.NewReader(src), parser.WithContext(parser.NewContext(parser.WithIDs(slugs{}))))
	if err := s.links(doc, name, to); err != nil {
		return nil, err
	}
	s.outline(p, doc, src)
	var b bytes.Buffer
	if err := md.Renderer().Render(&b, src, doc); err != nil {
		return nil, err
	}
	// A box that scrolls must be reachable with the keyboard.
	body := strings.ReplaceAll(b.String(), "<table>", `<div class="scroll" tabindex="0"><table>`)
	p.Body = template.HTML(strings.ReplaceAll(body, "</table>", "</table></div>"))
	return p, nil
}

// slugs gives headings the IDs that GitHub gives them.
type slugs map[string]int

var (
	markup   = regexp.MustCompile("<[^>]*>|`|\\*|\\]\\([^)]*\\)")
	unlinked = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func slug(heading string) string {
	heading = unlinked.ReplaceAllString(markup.ReplaceAllString(heading, ""), "")
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(heading)), " ", "-")
}

func (ids slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	id := slug(string(value))
	n := ids[id]
	if ids[id]++; n > 0 {
		id = fmt.Sprintf("%s-%d", id, n)
	}
	return []byte(id)
}

func (ids slugs) Put(value []byte) { ids[string(value)]++ }

// links makes the links of a document lead to the pages of the site. A link to a file that is not in the site leads to the
// repository, or becomes text if its address is not known.
func (s *site) links(doc ast.Node, name, to string) error {
	var lost []ast.Node
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			address, err := s.address(name, to, string(n.Destination))
			if n.Destination = []byte(address); address == "" {
				lost = append(lost, n)
			}
			return ast.WalkContinue, err
		case *ast.Image:
			n.Destination = []byte(relative(to, path.Join(path.Dir(name), string(n.Destination))))
		}
		return ast.WalkContinue, nil
	})
	for _, n := range lost {
		for c := n.FirstChild(); c != nil; c = n.FirstChild() {
			n.Parent().InsertBefore(n.Parent(), n, c)
		}
		n.Parent().RemoveChild(n.Parent(), n)
	}
	return err
}

// address returns the address in the page with the path to of what a link in the file name refers to, or "".
func (s *site) address(name, to, link string) (string, error) {
	file, fragment, _ := strings.Cut(link, "#")
	if strings.Contains(file, ":") {
		return link, nil
	}
	target := name
	if file != "" {
		target = path.Join(path.Dir(name), file)
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	switch {
	case target == findingsFile:
		if s.findings[strings.TrimPrefix(fragment, "#")] != nil {
			return relative(to, findingPath(fragment[1:])), nil
		}
		return relative(to, findingsPage) + fragment, nil
	case file == "" && to != pagePath(name):
		return "", fmt.Errorf("%s: cannot link to %s", name, link)
	case file == "":
		return link, nil
	case s.files[target] != nil:
		return relative(to, target) + fragment, nil
	}
	info, err := os.Stat(filepath.Join(s.root, target))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", name, err)
	case strings.HasSuffix(target, ".md"):
		s.enqueue(target)
		return relative(to, pagePath(target)) + fragment, nil
	case version.Repository == "":
		return "", nil
	case info.IsDir():
		return version.Repository + "/tree/HEAD/" + target, nil
	}
	return version.Repository + "/blob/HEAD/" + target, nil
}

// outline finds the title, the summary and the sections of a page. Sections of the second level are listed in the page, and the
// search finds all.
func (s *site) outline(p *page, doc ast.Node, src []byte) {
	part := sectionOf{}
	var words strings.Builder
	end := func() {
		part.Page, part.Text = p.Title, strings.Join(strings.Fields(words.String()), " ")
		if part.Heading != "" || part.Text != "" {
			p.sought = append(p.sought, part)
		}
		words.Reset()
	}
	var title ast.Node
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			if p.Summary == "" && n.Kind() == ast.KindParagraph {
				p.Summary = strings.Join(strings.Fields(plain(n, src)), " ")
			}
			words.WriteString(plain(n, src) + " ")
			continue
		}
		text := strings.TrimSpace(plain(h, src))
		id, _ := h.AttributeString("id")
		anchor := fmt.Sprintf("%s", id)
		if h.Level == 1 {
			p.Title, title = text, h
			continue
		}
		if h.Level == 2 {
			p.Parts = append(p.Parts, link{"#" + anchor, text})
		}
		end()
		part = sectionOf{Heading: text, URL: "#" + anchor}
	}
	end()
	if title != nil { // the layout has it
		doc.RemoveChild(doc, title)
	}
}

// plain returns the text of a node without markup.
func plain(n ast.Node, src []byte) string {
	var b strings.Builder
	ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(src))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		default:
			if entering && n.Type() == ast.TypeBlock && n.Kind() != ast.KindParagraph && n.ChildCount() == 0 {
				b.Write(lines(n, src))
			}
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

func lines(n ast.Node, src []byte) []byte {
	var b bytes.Buffer
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(src))
	}
	return b.Bytes()
}

// codeRenderer renders code: transcripts with colors, and IDs of rules with links.
type codeRenderer struct {
	*site
	page *page
	src  []byte
}

func (r *codeRenderer) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindFencedCodeBlock, r.block)
	reg.Register(ast.KindCodeBlock, r.block)
	reg.Register(ast.KindCodeSpan, r.span)
}

// byteLine matches a line of a message in byte form.
var byteLine = regexp.MustCompile(`(?m)^(?:[0-9a-f]{2}(?: [0-9a-f]{2}){0,7}  |").*\)$`)

// step matches the first line of a transcript in a block that does not name its language.
var step = regexp.MustCompile(`^(?:#.*\n|@.*\n)*[A-Z][A-Za-z0-9 ]* -> [A-Z]`)

func (r *codeRenderer) block(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if f, ok := n.(*ast.FencedCodeBlock); ok {
		language = string(f.Language(src))
	}
	code := string(lines(n, src))
	shown, class := html.EscapeString(code), ""
	switch {
	case language == "wire" || language == "" && step.MatchString(code):
		shown = r.grammar.html(code)
		if !byteLine.MatchString(code) { // its columns mean nothing, so that long lines may be folded
			class = ` class="folds"`
		}
	case language == "console":
		shown = r.console(code)
	}
	fmt.Fprintf(w, "<pre tabindex=\"0\"%s><code>%s</code></pre>\n", class, shown)
	return ast.WalkSkipChildren, nil
}

// message matches a line of a transcript in the output of a command.
var message = regexp.MustCompile(`^ *(?:[A-Z][A-Za-z0-9 ]* -> [A-Z].*|[0-9a-f]{2}(?: [0-9a-f]{2}){0,7}(?:  .*)?|\^+ .*)$`)

// console returns commands with their output as HTML.
func (r *codeRenderer) console(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		switch bare := strings.TrimSuffix(line, "\n"); {
		case strings.HasPrefix(line, "$ "):
			b.WriteString("<b>" + html.EscapeString(bare) + "</b>\n")
		case message.MatchString(bare):
			b.WriteString(r.grammar.html(line))
		default:
			b.WriteString(html.EscapeString(line))
		}
	}
	return b.String()
}

func (r *codeRenderer) span(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	code := plain(n, src)
	shown := "<code>" + html.EscapeString(code) + "</code>"
	if _, linked := n.Parent().(*ast.Link); r.rules[code] != nil && !linked {
		shown = fmt.Sprintf(`<a href="%s">%s</a>`, relative(r.page.path, rulePath(code)), shown)
	}
	w.WriteString(shown)
	return ast.WalkSkipChildren, nil
}
