package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// This file reads tasks and writes answers. It does not depend on the library.

// A task has the number of its words, without its name and its options, and a function that performs it, which returns the
// words of the answer after "ok".
type task struct {
	words int
	do    func(words []string, o options) ([]any, error)
}

// options are the options of a task, such as pri=5.
type options map[string]string

// number returns the value of an option, or another value if the task does not contain the option.
func (o options) number(name string, missing uint64) uint64 {
	if value, ok := o[name]; ok {
		return number(value)
	}
	return missing
}

// seconds returns the value of an option as a duration, or another value if the task does not contain the option.
func (o options) seconds(name string, missing uint64) time.Duration {
	return time.Duration(o.number(name, missing)) * time.Second
}

func number(word string) uint64 {
	n, _ := strconv.ParseUint(word, 10, 64)
	return n
}

var errUsage = errors.New("the task is invalid")

// serve performs the tasks of standard input until its end. It calls connect before each task. code returns the error code
// of docs/drivers.md for an error.
func serve(tasks map[string]task, connect func() error, code func(error) string) {
	// The library can wait forever. Without cgo, the Go runtime would then end the program, except if it has a timer.
	time.AfterFunc(time.Hour, func() {})
	for in := bufio.NewReader(os.Stdin); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		results, err := perform(tasks, connect, splitWords(line))
		answer := "ok"
		for _, r := range results {
			answer += " " + quote(r)
		}
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			answer = "error unsupported"
		case errors.Is(err, errUsage):
			answer = "error usage"
		case err != nil:
			answer = "error " + code(err) + " " + quote(err.Error())
		}
		fmt.Println(answer)
	}
}

// perform performs the task of a line.
func perform(tasks map[string]task, connect func() error, words []string) ([]any, error) {
	t, ok := tasks[words[0]]
	switch {
	case !ok:
		return nil, errors.ErrUnsupported
	case len(words) <= t.words:
		return nil, errUsage
	}
	o := options{}
	for _, w := range words[t.words+1:] {
		name, value, _ := strings.Cut(w, "=")
		o[name] = value
	}
	if err := connect(); err != nil {
		return nil, err
	}
	return t.do(words[1:t.words+1], o)
}

var (
	word   = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"(?:\*([0-9]+))?|([^ \t\n]+)`)
	escape = regexp.MustCompile(`\\(?:x(..)|.)`)
	plain  = regexp.MustCompile(`^[-A-Za-z0-9_.,:;/+@%]+$`)
)

// splitWords splits a task into its words.
func splitWords(line string) []string {
	var words []string
	for _, m := range word.FindAllStringSubmatch(line, -1) {
		if m[3] != "" {
			words = append(words, m[3])
			continue
		}
		w := escape.ReplaceAllStringFunc(m[1], func(e string) string {
			if e[1] == 'x' {
				n, _ := strconv.ParseUint(e[2:], 16, 8)
				return string([]byte{byte(n)})
			}
			return strings.NewReplacer("0", "\x00", "t", "\t", "n", "\n", "r", "\r").Replace(e[1:])
		})
		if n, err := strconv.Atoi(m[2]); err == nil {
			w = strings.Repeat(w, n)
		}
		words = append(words, w)
	}
	if words == nil {
		return []string{""}
	}
	return words
}

// quote returns a result as a word of an answer.
func quote(result any) string {
	w := fmt.Sprintf("%s", result)
	if n, ok := result.(uint64); ok {
		w = strconv.FormatUint(n, 10)
	}
	if plain.MatchString(w) {
		return w
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(w) {
		if c := w[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
