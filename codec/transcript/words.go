package transcript

import "jobwire/codec"

// ParseArgs reads a line of arguments as they may stand behind a message's type. line and
// col say where in the file it begins; an error is an [*Error].
func ParseArgs(file string, line, col int, s string) ([]Arg, error) {
	pos := at{file: file, line: line, col: col}
	room := maxText
	toks, err := lex(pos, s, &room)
	if err != nil {
		return nil, err
	}
	var args []Arg
	for _, tok := range toks {
		a, err := argument(pos.to(tok.col), &Choice{Type: &codec.Type{}}, tok)
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
	return args, nil
}

// ParseWords reads a line of words and quoted texts. What means something among arguments,
// such as $name, is a word like others here; only "#" begins a comment.
func ParseWords(s string) ([]string, error) {
	room := maxText
	toks, err := lex(at{line: 1, col: 1}, s, &room)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, tok := range toks {
		words = append(words, tok.text)
	}
	return words, nil
}

// Quote writes a value as a word, or in quotes where that is needed, so that both
// ParseArgs and ParseWords read it back.
func Quote(value string) string { return string(appendValue(nil, nil, []byte(value), 0)) }
