package language

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	sample = flag.Int("sample", 0, "with -v, print this many random sentences for a reader to restate")
	seed   = flag.Uint64("seed", 1, "random seed of -sample")
)

// TestSample prints sentences drawn at random from README.md, the other pages, help,
// messages, comments and cases, equally many of each. Each sentence is marked with >> and <<, in
// its paragraph, after the lines of the file that say what it is about. Give them to a reader who
// has not seen the project; each sentence that the reader cannot restate correctly is reworded.
func TestSample(t *testing.T) {
	if *sample == 0 {
		t.Skip("prints sentences with -sample")
	}
	groups := []string{"README.md", "pages", "help", "messages", "comments", "cases"}
	type drawn struct {
		paragraph passage
		sentence  string
	}
	sentences := map[string][]drawn{}
	all := passages(t)
	for _, kind := range []string{kindUser, kindComment} {
		for _, p := range paragraphs(all[kind]) {
			if p.file == "Makefile" && !strings.Contains(p.text, "#") {
				continue // not a comment
			}
			group := sampleGroup(p.file)
			if group == "messages" && kind == kindComment {
				group = "comments"
			}
			for _, s := range split(p.text) {
				sentences[group] = append(sentences[group], drawn{p, s})
			}
		}
	}
	r := rand.New(rand.NewPCG(*seed, 0))
	for i := range *sample {
		of := sentences[groups[i%len(groups)]]
		if len(of) == 0 {
			t.Fatalf("%s: no sentence found", groups[i%len(groups)])
		}
		n := r.IntN(len(of))
		p := of[n].paragraph
		src, err := os.ReadFile(filepath.Join(root, p.file))
		if err != nil {
			t.Fatal(err)
		}
		around := surroundings(p.file, strings.Split(string(src), "\n"), p.line-1)
		t.Logf("%s:%d\n%s\n%s\n", p.file, p.line, strings.Join(around, "\n"), inContext(of[n].sentence, p.text))
		sentences[groups[i%len(groups)]] = slices.Delete(of, n, n+1)
	}
}

// surroundings returns the lines of a file that say what line n is about: the heading above, the
// head of the table, the ID of the rule, the name of the case, or the declaration and the code.
func surroundings(file string, lines []string, n int) []string {
	var around []string
	last := func(re *regexp.Regexp) {
		for i := min(n, len(lines)-1); i >= 0; i-- {
			if re.MatchString(lines[i]) {
				if i < n {
					around = append(around, lines[i])
				}
				return
			}
		}
	}
	switch filepath.Ext(file) {
	case ".md":
		last(regexp.MustCompile(`^#`))
		if strings.HasPrefix(lines[n], "|") {
			first := n
			for first > 0 && strings.HasPrefix(lines[first-1], "|") {
				first--
			}
			if first < n {
				around = append(around, lines[first])
			}
		}
	case ".txt":
		if filepath.Base(file) != "rules.txt" {
			return []string{"jobwire help " + strings.TrimSuffix(filepath.Base(file), ".txt")}
		}
		last(regexp.MustCompile(`^[a-z0-9.-]+ [A-Z]`))
	case ".wire":
		last(regexp.MustCompile(`^@section`))
		last(regexp.MustCompile(`^@(case|setup)`))
	case ".yaml", ".yml":
		last(regexp.MustCompile(`^\s*- `))
	case ".go":
		if !strings.HasPrefix(lines[n], "//") {
			last(regexp.MustCompile(`^(func|type|var|const) `))
		}
		// The field above, or the like.
		if n > 0 && strings.HasPrefix(lines[n], "\t") && (len(around) == 0 || lines[n-1] != around[0]) {
			around = append(around, lines[n-1])
		}
		// The code beside a comment, or the first line of code after it.
		for i := n; i < len(lines); i++ {
			if code := strings.TrimSpace(lines[i]); code != "" && !strings.HasPrefix(code, "//") {
				around = append(around, lines[i])
				break
			}
		}
	}
	return around
}

// sampleGroup returns the group of a file's sentences. Comments of Go files are a group of their own.
func sampleGroup(file string) string {
	switch {
	case file == "README.md":
		return file
	case strings.HasSuffix(file, ".md"):
		return "pages"
	case strings.HasSuffix(file, ".wire"):
		return "cases"
	case strings.HasPrefix(file, "cmd/jobwire/help/"):
		return "help"
	}
	return "messages"
}

// paragraphs joins the lines of pages, help and cases: those of a paragraph, of an item of a
// list, or of a comment. Code and the rows of tables' heads are left out.
func paragraphs(lines []passage) []passage {
	var all []passage
	code, open := false, false
	for _, p := range lines {
		group, ext := sampleGroup(p.file), filepath.Ext(p.file)
		if group == "messages" && !slices.Contains([]string{".yaml", ".yml"}, ext) {
			all, open = append(all, p), false
			continue
		}
		var before *passage
		if len(all) > 0 && open && all[len(all)-1].file == p.file {
			before = &all[len(all)-1]
		}
		switch {
		case ext == ".wire":
			if before != nil && before.line+1+strings.Count(before.text, "\n") == p.line {
				before.text += "\n" + p.text
			} else {
				all, open = append(all, p), true
			}
		case strings.HasPrefix(p.text, "```"):
			code, open = !code, false
		case group != "messages" && (code || strings.HasPrefix(p.text, "    ") && !open) || example.MatchString(p.text) || strings.TrimSpace(p.text) == "" || strings.HasPrefix(p.text, "| ---"):
			open = false
		case before != nil && strings.HasPrefix(before.text, "> ") && strings.HasPrefix(p.text, "> "):
			before.text += " " + strings.TrimPrefix(p.text, "> ")
		case before != nil && (group == "help" && !strings.HasPrefix(p.text, " ") && !strings.HasPrefix(p.text, "- ") || strings.HasPrefix(p.text, "        ")):
			before.text += " " + p.text
		case before != nil && group != "help" && !blockStart.MatchString(p.text) && !(group == "messages" && entry.MatchString(p.text)):
			before.text += " " + p.text
		default:
			all, open = append(all, p), true
		}
	}
	return all
}

var (
	example     = regexp.MustCompile(`^\s+(jobwire|/usr|\{)`)
	entry       = regexp.MustCompile(`^\s*[a-z-]+:( |$)`)
	blockStart  = regexp.MustCompile(`^(\s*[-*|#>]|\s*[0-9]+\. )`)
	sentenceEnd = regexp.MustCompile(`[.!?][)"]?(\s+|$)|\n\s*\n| \| `)
	word        = regexp.MustCompile(`^[("'` + "`" + `]?[A-Za-z][a-z'-]*[)"'` + "`" + `,]?$`)
)

// split returns the sentences of a text that have at least five words, most of them
// plain ones.
func split(text string) []string {
	var all []string
	for _, s := range sentenceEnd.Split(text, -1) {
		fields := strings.Fields(strings.TrimPrefix(strings.Trim(s, "|*# "), "- "))
		plain := 0
		for _, f := range fields {
			if word.MatchString(f) {
				plain++
			}
		}
		if plain >= 5 && 3*plain > 2*len(fields) && fields[0] != "jobwire" {
			all = append(all, strings.Join(fields, " "))
		}
	}
	return all
}

// inContext returns a sentence between >> and << in its paragraph.
func inContext(sentence, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	before, after, ok := strings.Cut(text, sentence)
	if !ok {
		return ">> " + sentence + " <<"
	}
	if i := strings.Index(after, " "); i >= 0 && i <= 2 {
		sentence, after = sentence+after[:i], after[i:] // the full stop
	} else if len(after) <= 2 {
		sentence, after = sentence+after, ""
	}
	return before + ">> " + sentence + " <<" + after
}

// TestSplit tests that split returns the sentences of a text and leaves out short ones, table borders and bytes in
// hexadecimal.
func TestSplit(t *testing.T) {
	got := split("The server closes the connection at once. Yes.\n\n| a | The client sends one more request |\n\n00 52 45 51 52 53")
	want := []string{"The server closes the connection at once", "The client sends one more request"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
