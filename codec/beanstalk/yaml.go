package beanstalk

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"jobwire/codec"
)

// isScalar reports whether v, behind a key or a dash in a line of its own, is
// surely a scalar of YAML, be it plain, in simple quotes, empty, or followed by a
// comment. Other scalars there are, but no server needs them; they are left to
// judgeYAML.
func isScalar(v []byte) bool {
	for _, c := range v {
		if c < ' ' || c > '~' {
			return false
		}
	}
	if k := bytes.IndexByte(v, '#'); k == 0 || k > 0 && v[k-1] == ' ' {
		v = bytes.TrimRight(v[:k], " ")
	}
	switch n := len(v); {
	case n == 0:
		return true
	case v[0] == '"':
		return n > 1 && v[n-1] == '"' && !bytes.ContainsAny(v[1:n-1], `"\\`)
	case v[0] == '-':
		return n > 1 && v[1] != ' ' && v[1] != '-' && plain(v)
	}
	return bytes.IndexByte([]byte("?:,[]{}&*!|>'%@` "), v[0]) < 0 && plain(v)
}

// plain reports whether nothing behind the first byte of v ends a plain scalar.
func plain(v []byte) bool {
	last := v[len(v)-1]
	return last != ' ' && last != ':' && !bytes.Contains(v, []byte(": "))
}

// judgeYAML tells what keeps a body from being one document of the kind that
// the row holds, a dictionary of scalars or a list of them, and where; the detail
// is empty if nothing does.
func judgeYAML(body []byte, row *codec.Type) (at int, detail string) {
	defer func() {
		// A fault in somebody else's parser must not end whoever reads a capture.
		if r := recover(); r != nil {
			at, detail = 0, fmt.Sprintf("cannot be read as YAML: %v", r)
		}
	}()
	file, err := parser.ParseBytes(body, 0)
	if err != nil {
		at, detail = 0, err.Error()
		if e, ok := errors.AsType[*yaml.SyntaxError](err); ok {
			at, detail = place(body, e.Token.Position), e.Message
		}
		return at, "is no YAML: " + detail
	}
	kind, want := ast.SequenceType, "a list"
	if len(row.Repeat) > 1 {
		kind, want = ast.MappingType, "a dictionary"
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() != kind {
		return 0, "is YAML, but not " + want
	}
	var values []ast.Node
	switch n := file.Docs[0].Body.(type) {
	case *ast.SequenceNode:
		values = n.Values
	case *ast.MappingNode:
		for _, v := range n.Values {
			values = append(values, v.Key, v.Value)
		}
	}
	for _, v := range values {
		if !slices.Contains(scalars, v.Type()) {
			return place(body, v.GetToken().Position), fmt.Sprintf("has a %s where a scalar is due", strings.ToLower(v.Type().String()))
		}
	}
	return 0, ""
}

// scalars are the parser's kinds of them.
var scalars = []ast.NodeType{ast.StringType, ast.IntegerType, ast.FloatType, ast.BoolType, ast.NullType, ast.InfinityType, ast.NanType, ast.LiteralType}

// place returns the offset of a place in a body, or of the end of its line if
// the parser is mistaken about the column, which it counts in characters.
func place(body []byte, p *token.Position) int {
	at := 0
	for range p.Line - 1 {
		at += bytes.IndexByte(body[at:], '\n') + 1
	}
	end := bytes.IndexByte(body[at:], '\n')
	if end < 0 {
		end = len(body) - at
	}
	return at + min(max(p.Column-1, 0), end)
}
