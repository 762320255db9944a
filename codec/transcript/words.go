package transcript

import (
	"bufio"
	"bytes"
	"io"
	"strings"

	"jobwire/codec"
)

// ParseArgs parses a line of arguments in the form in which they follow a message type. line and col are the
// position of s in the file. An error is an [*Error].
func ParseArgs(file string, line, col int, s string) ([]Arg, error) {
	pos := position{file: file, line: line, col: col}
	quoted := quotes{room: maxText, sharedTexts: newSharedTexts()}
	toks, err := lex(pos, s, &quoted)
	if err != nil {
		return nil, err
	}
	var args []Arg
	for _, tok := range toks {
		a, err := argument(pos.atColumn(tok.col), &Choice{Type: &codec.Type{}}, tok)
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	return args, nil
}

// FormatArgs returns arguments as a line that ParseArgs parses to the same arguments.
func FormatArgs(args []Arg) string {
	var line []byte
	for i := range args {
		line = append(appendArg(line, nil, &args[i], 0), ' ')
	}
	return string(bytes.TrimSuffix(line, []byte(" ")))
}

// ParseWords parses a line of words and quoted texts, which is a task or an answer of a driver. Words with a special
// meaning among arguments, such as $name, are ordinary words here, and words may contain parentheses and single quotes;
// only "#" begins a comment.
func ParseWords(s string) ([]string, error) {
	quoted := quotes{room: maxText, words: true, sharedTexts: newSharedTexts()}
	toks, err := lex(position{line: 1, col: 1}, s, &quoted)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, tok := range toks {
		words = append(words, tok.text)
	}
	return words, nil
}

// MatchWords reports whether words match arguments, of which "..." matches any number of words. known contains the
// values of names; if the words match, MatchWords adds the names that are not in it. A literal also matches the words
// that are equivalent to it, unless equivalent is nil.
func MatchWords(
	want []Arg, words []string, known map[string]string, equivalent func(literal, word string) bool,
) (matched bool) {
	var added []string
	defer func() {
		for _, name := range added {
			if !matched {
				delete(known, name)
			}
		}
	}()
	for i, a := range want {
		if a.Kind == Rest {
			for k := i; k <= len(words); k++ {
				if MatchWords(want[i+1:], words[k:], known, equivalent) {
					return true
				}
			}
			return false
		}
		if i >= len(words) {
			return false
		}
		literal, word := string(a.Value), words[i]
		switch v, ok := known[a.Name]; {
		case a.Kind == Name && !ok:
			known[a.Name], added = word, append(added, a.Name)
		case a.Kind == Name && v != word:
			return false
		case a.Kind == Literal && literal != word && (equivalent == nil || !equivalent(literal, word)):
			return false
		}
	}
	return len(words) == len(want)
}

// Quote returns a value as a word, or in quotes if necessary, so that both ParseArgs and ParseWords parse it
// to the same value.
func Quote(value string) string {
	if v := []byte(value); isWord(v) && !isRun(v) {
		return value
	}
	return string(appendQuoted(nil, []byte(value), 0))
}

// ReadLine returns the next line without its line end, or an error if it has more than limit bytes. It keeps nothing of
// a long line, unlike a bufio.Scanner.
func ReadLine(r *bufio.Reader, limit int) (string, error) {
	var parts [][]byte
	size := 0
	for {
		part, err := r.ReadSlice('\n')
		if size += len(part); size > limit {
			return "", bufio.ErrTooLong
		}
		if err == bufio.ErrBufferFull {
			parts = append(parts, bytes.Clone(part))
			continue
		}
		if err != nil && (err != io.EOF || size == 0) {
			return "", err
		}
		var line strings.Builder
		line.Grow(size)
		for _, p := range append(parts, part) {
			line.Write(p)
		}
		return strings.TrimSuffix(strings.TrimSuffix(line.String(), "\n"), "\r"), nil
	}
}
