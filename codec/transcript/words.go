package transcript

import "jobwire/codec"

// ParseArgs parses a line of arguments in the form in which they follow a message type. line and col are the
// position of s in the file. An error is an [*Error].
func ParseArgs(file string, line, col int, s string) ([]Arg, error) {
	pos := position{file: file, line: line, col: col}
	quoted := quotes{maxText, newSharedTexts()}
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

// ParseWords parses a line of words and quoted texts. Words with a special meaning among arguments, such as
// $name, are ordinary words here; only "#" begins a comment.
func ParseWords(s string) ([]string, error) {
	quoted := quotes{maxText, newSharedTexts()}
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

// Quote returns a value as a word, or in quotes if necessary, so that both ParseArgs and ParseWords parse it
// to the same value.
func Quote(value string) string { return string(appendValue(nil, nil, []byte(value), 0)) }
