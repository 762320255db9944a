package language

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

// A passage is one piece of text: a string literal, a comment, an identifier or
// a line of a file.
type passage struct {
	file string // slash-separated, from the root of the module
	line int
	text string
}

// The kinds of text. Users read documentation and what commands print; only
// contributors read comments and identifiers.
const (
	kindUser       = "user-visible text"
	kindComment    = "comments"
	kindIdentifier = "identifiers"
)

// TestWords fails on each listed word in text that users read (string literals of the
// program, rules, cases, documentation, pages and profiles), in comments and in
// identifiers. Exceptions are in testdata/exceptions.txt; an unused exception fails too.
func TestWords(t *testing.T) {
	words := readWords(t)
	exceptions := readExceptions(t)
	all := passages(t)
	for _, kind := range []string{kindUser, kindComment, kindIdentifier} {
		for _, p := range all[kind] {
			for _, u := range words.find(p.text) {
				if !exceptions.allow(p, u.word) {
					t.Errorf("%s:%d: %s: %q in %q; instead: %s", p.file, p.line, kind, u.word, excerpt(p.text, u.word), u.instead)
				}
			}
		}
	}
	for _, e := range exceptions {
		if !e.used {
			t.Errorf("testdata/exceptions.txt:%d: the exception is not needed any more; remove it", e.line)
		}
	}
}

// TestFind checks which words of a sentence the list finds.
func TestFind(t *testing.T) {
	for text, want := range map[string]int{
		"the reply is due behind the header": 2,
		"the address is no address":          1,
		"there is no reply":                  0,
		"Nobody was told":                    2,
		"colourful behaviour":                1,
		"due to a lost segment":              0,
		"the residue":                        0,
		"Due after 3 s; the message DUE":     1,
	} {
		if got := len(readWords(t).find(text)); got != want {
			t.Errorf("%q: found %d words, want %d", text, got, want)
		}
	}
}

// A wordList finds the listed words of a text.
type wordList struct {
	re      *regexp.Regexp // one group for each line of the list
	instead []string
}

// A use is one listed word in a text.
type use struct{ word, instead string }

// harmless are uses of listed words that say what they mean, and IDs of rules and
// cases, which are permanent.
var harmless = regexp.MustCompile(`(?i)\bdue to\b|\bthere (is|are|was|were) no\b|\bpackage judge\b|\b\w+(\.\w+(-\w+)*)+`)

func (l *wordList) find(text string) []use {
	text = harmless.ReplaceAllLiteralString(text, "_")
	var uses []use
	for _, m := range l.re.FindAllStringSubmatchIndex(text, -1) {
		for i, instead := range l.instead {
			if m[2*i+2] >= 0 {
				uses = append(uses, use{text[m[0]:m[1]], instead})
			}
		}
	}
	return uses
}

func readWords(t *testing.T) *wordList {
	t.Helper()
	var groups, instead []string
	for _, l := range readLines(t, "testdata/words.txt") {
		pattern, replacement, ok := strings.Cut(l.text, " = ")
		if !ok || strings.Contains(strings.ReplaceAll(pattern, "(?", ""), "(") {
			t.Fatalf("words.txt:%d: expected PATTERN = REPLACEMENT, without groups in PATTERN", l.line)
		}
		groups = append(groups, "("+pattern+")")
		instead = append(instead, replacement)
	}
	re, err := regexp.Compile(`(?i)\b(?:` + strings.Join(groups, "|") + `)\b`)
	if err != nil {
		t.Fatal(err)
	}
	return &wordList{re, instead}
}

// An exception allows a word in the passages of one file that contain a text.
type exception struct {
	line             int
	file, word, text string
	used             bool
}

type exceptionList []*exception

func (l exceptionList) allow(p passage, word string) bool {
	for _, e := range l {
		if ok, _ := filepath.Match(e.file, p.file); ok && strings.EqualFold(e.word, word) && strings.Contains(p.text, e.text) {
			e.used = true
			return true
		}
	}
	return false
}

// readExceptions reads lines of the form FILE: WORD: TEXT: REASON, separated by
// tabs. FILE is a pattern of path.Match.
func readExceptions(t *testing.T) exceptionList {
	t.Helper()
	var all exceptionList
	for _, l := range readLines(t, "testdata/exceptions.txt") {
		f := strings.Split(l.text, "\t")
		if len(f) != 4 || f[3] == "" {
			t.Fatalf("exceptions.txt:%d: expected FILE, WORD, TEXT and REASON, separated by tabs", l.line)
		}
		all = append(all, &exception{line: l.line, file: f[0], word: f[1], text: f[2]})
	}
	return all
}

// readLines returns the lines of a file that are neither empty nor comments.
func readLines(t *testing.T, name string) []passage {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []passage
	for i, l := range strings.Split(string(data), "\n") {
		if l != "" && !strings.HasPrefix(l, "#") {
			all = append(all, passage{name, i + 1, l})
		}
	}
	return all
}

// passages returns the text of the whole module by kind.
func passages(t *testing.T) map[string][]passage {
	t.Helper()
	all := map[string][]passage{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && path != root || slices.Contains([]string{"testdata", "node_modules", "bin"}, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		switch {
		case filepath.Ext(name) == ".go":
			return addGo(all, name, path)
		case d.Name() == "rules.txt" && !strings.HasPrefix(name, "cmd/"):
			return addRules(all, name, path)
		case slices.Contains([]string{".wire", ".js", ".php", ".pl", ".py", ".rb", ".sh", ".c", ".lua"}, filepath.Ext(name)):
			return addLines(all, name, path)
		case slices.Contains([]string{".md", ".html", ".yaml", ".yml"}, filepath.Ext(name)), d.Name() == "Makefile", filepath.Base(filepath.Dir(name)) == "help":
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i, line := range strings.Split(string(data), "\n") {
				all[kindUser] = append(all[kindUser], passage{name, i + 1, line})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{kindUser, kindComment, kindIdentifier} {
		if len(all[kind]) < 1000 {
			t.Fatalf("%s: only %d passages were read", kind, len(all[kind]))
		}
	}
	return all
}

// An id is a string that names something and that users type or select by: a rule,
// a case, a fault, a flag. It is not prose.
var id = regexp.MustCompile(`^[\w./*:{}-]*[.-][\w./*:{}-]*$`)

func addGo(all map[string][]passage, name, path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	add := func(kind string, pos token.Pos, text string) {
		all[kind] = append(all[kind], passage{name, fset.Position(pos).Line, text})
	}
	for _, g := range f.Comments {
		if !bytes.HasPrefix([]byte(g.List[0].Text), []byte("//go:")) {
			add(kindComment, g.Pos(), strings.Join(strings.Fields(g.Text()), " "))
		}
	}
	test := strings.HasSuffix(name, "_test.go")
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			for _, name := range n.Names {
				add(kindIdentifier, name.Pos(), separate(name.Name))
			}
			n.Tag = nil
		case *ast.FuncDecl:
			add(kindIdentifier, n.Name.Pos(), separate(n.Name.Name))
		case *ast.TypeSpec:
			add(kindIdentifier, n.Name.Pos(), separate(n.Name.Name))
		case *ast.ValueSpec:
			for _, name := range n.Names {
				add(kindIdentifier, name.Pos(), separate(name.Name))
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if name, ok := e.(*ast.Ident); ok {
						add(kindIdentifier, name.Pos(), separate(name.Name))
					}
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && !test {
				if text, err := strconv.Unquote(n.Value); err == nil && !id.MatchString(text) {
					add(kindUser, n.Pos(), text)
				}
			}
		}
		return true
	})
	return nil
}

// addRules reads a file in the format of codec.ParseRules. The first line of a rule and
// each of its fields are passages.
func addRules(all map[string][]passage, name, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	prose := false // the previous line is prose of a rule
	for i, line := range strings.Split(string(data), "\n") {
		text, indented := strings.CutPrefix(line, "  ")
		switch {
		case strings.HasPrefix(line, "#"):
			all[kindComment] = append(all[kindComment], passage{name, i + 1, line})
		case prose && indented && !strings.HasPrefix(text, "Reading: ") && !strings.HasPrefix(text, "Untestable: "):
			all[kindUser][len(all[kindUser])-1].text += " " + text
		default:
			all[kindUser] = append(all[kindUser], passage{name, i + 1, text})
		}
		prose = indented
	}
	return nil
}

// addLines reads a file of cases, a script or a program. Descriptions of cases are text
// for users; a line that begins with a comment is a comment.
func addLines(all map[string][]passage, name, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(data), "\n") {
		if m := description.FindStringSubmatch(line); m != nil && filepath.Ext(name) == ".wire" {
			all[kindUser] = append(all[kindUser], passage{name, i + 1, m[1]})
		} else if m := commentLine.FindStringSubmatch(line); m != nil {
			all[kindComment] = append(all[kindComment], passage{name, i + 1, m[1]})
		}
	}
	return nil
}

var (
	description = regexp.MustCompile(`^@(?:about|interpretation) (.*)`)
	commentLine = regexp.MustCompile(`^\s*(?:#|//|--|/?\*) ?(.*)`)
)

// separate splits an identifier into its words: "maxFrameSize" is "max Frame Size".
func separate(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) || r == '_' {
			b.WriteByte(' ')
		}
		if r != '_' {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// excerpt returns the text around a word, at most some 80 characters.
func excerpt(text, word string) string {
	text = strings.Join(strings.Fields(text), " ")
	i := strings.Index(text, word)
	from, to := max(0, i-40), min(len(text), i+len(word)+40)
	if i < 0 {
		from, to = 0, min(len(text), 80)
	}
	return fmt.Sprintf("...%s...", strings.ToValidUTF8(text[from:to], ""))
}
