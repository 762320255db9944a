package language

import (
	"flag"
	"math/rand/v2"
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
// messages, comments and cases, equally many of each. Give them to a reader who has not seen the
// project; each sentence that the reader cannot restate correctly is reworded.
func TestSample(t *testing.T) {
	if *sample == 0 {
		t.Skip("prints sentences with -sample")
	}
	groups := []string{"README.md", "pages", "help", "messages", "comments", "cases"}
	sentences := map[string][]passage{}
	all := passages(t)
	for _, kind := range []string{kindUser, kindComment} {
		for _, p := range paragraphs(all[kind]) {
			group := sampleGroup(p.file)
			if group == "messages" && kind == kindComment {
				group = "comments"
			}
			for _, s := range split(p.text) {
				sentences[group] = append(sentences[group], passage{p.file, p.line, inContext(s, p.text)})
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
		t.Logf("%s:%d: %s", of[n].file, of[n].line, of[n].text)
		sentences[groups[i%len(groups)]] = slices.Delete(of, n, n+1)
	}
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

// paragraphs joins the lines of pages and of help: those of a paragraph, or of an item of a list.
// Code and the rows of tables' heads are left out.
func paragraphs(lines []passage) []passage {
	var all []passage
	code, open := false, false
	for _, p := range lines {
		if g := sampleGroup(p.file); g == "messages" || g == "cases" {
			all = append(all, p)
			continue
		}
		switch {
		case strings.HasPrefix(p.text, "```"):
			code, open = !code, false
		case code || strings.HasPrefix(p.text, "    ") || strings.TrimSpace(p.text) == "" || strings.HasPrefix(p.text, "| ---"):
			open = false
		case open && all[len(all)-1].file == p.file && !blockStart.MatchString(p.text):
			all[len(all)-1].text += " " + p.text
		default:
			all, open = append(all, p), true
		}
	}
	return all
}

var (
	blockStart  = regexp.MustCompile(`^(\s*[-*|#>]|\s*[0-9]+\. )`)
	sentenceEnd = regexp.MustCompile(`[.!?][)"]?(\s+|$)|\n\s*\n| \| `)
	word        = regexp.MustCompile(`^[("'` + "`" + `]?[A-Za-z][a-z'-]*[)"'` + "`" + `,]?$`)
)

// split returns the sentences of a text that have at least five words, most of them
// plain ones.
func split(text string) []string {
	var all []string
	for _, s := range sentenceEnd.Split(text, -1) {
		fields := strings.Fields(strings.Trim(s, "|*-# "))
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

// inContext returns a sentence between >> and <<, with what comes before and after it in
// the text that a reader sees.
func inContext(sentence, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	i := strings.Index(text, sentence)
	if i < 0 {
		return ">> " + sentence + " <<"
	}
	before, after := text[:i], text[i+len(sentence):]
	if len(before) > 200 {
		before = "..." + before[len(before)-200:]
	}
	if len(after) > 100 {
		after = after[:100] + "..."
	}
	return strings.ToValidUTF8(before+">> "+sentence+" <<"+after, "")
}

func TestSplit(t *testing.T) {
	got := split("The server closes the connection at once. Yes.\n\n| a | The client sends one more request |\n\n00 52 45 51 52 53")
	want := []string{"The server closes the connection at once", "The client sends one more request"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
