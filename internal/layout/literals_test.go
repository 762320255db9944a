package layout

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"jobwire/catalog"
	"jobwire/codec"
)

// The packages that belong to one protocol may name its message types. The elements are patterns of path.Match for packages
// or files. Programs in pcap/internal create and measure captures for tests.
var mayNameTypes = []string{
	"codec/beanstalk", "codec/danga", "codec/gearman", "codec/gearmonkey", "codec/resp",
	"refserver/*", "refserver/*/mutants", "refpeer/*", "refpeer/*/mutants", "fuzz/model", "corpus", "pcap/internal/*",
	"fuzz/faults/beanstalk.go", "fuzz/faults/danga.go", "fuzz/faults/gearman.go", "fuzz/faults/gearmonkey.go", // faulty servers
	"loadgen/protocols",
}

// notTypes are literals that are equal to the name of a message type but mean something else.
var notTypes = map[string]string{
	`audit/run.go: "error"`:                     "an answer of a driver",
	`conform/program.go: "error"`:               "an answer of a driver",
	`conform/suite.go: "watch"`:                 "the key @watch of a case",
	`play/checks.go: "watch"`:                   "the key @watch of a case",
	`judge/gearmonkey.go: "OK"`:                 "the value of an element",
	`judge/gearmonkey.go: "SHA1"`:               "the label of a field",
	`loadgen/adapter.go: "status"`:              "a scenario",
	`fuzz/transcribe/writer.go: "watch"`:        "the key @watch of a case",
	`pcap/report/json.go: "message"`:            "a kind of JSON object",
	`refpeer/internal/peer/driver.go: "error"`:  "an answer of a driver",
	`refpeer/internal/peer/worker.go: "status"`: "an answer of a driver",
}

// aboutOneType are the literals in package judge in checks of rules about one message type.
var aboutOneType = []struct {
	rule    codec.RuleID
	literal string
}{
	{"gearman.grab.all", "GRAB_JOB_ALL"},
	{"gearman.grab.assign-unique", "GRAB_JOB_UNIQ"},
	{"gearman.sched.background", "SUBMIT_JOB_SCHED"},
	{"beanstalk.delete.not-found", "NOT_FOUND"},
	{"beanstalk.ignore.last", "NOT_IGNORED"},
	{"beanstalk.list.watched", "list-tubes-watched"},
	{"beanstalk.reserve.timeout-expires", "TIMED_OUT"},
	{"gearmonkey.create.order", "HMSET_IDLE"},
	{"gearmonkey.create.order", "PUBLISH_CREATE"},
	{"gearmonkey.create.once", "LPUSH_QUEUE"},
	{"gearmonkey.create.once", "ZADD_SCHEDULED"},
	{"gearmonkey.receive.order", "PUBLISH_START"},
	{"gearmonkey.receive.order", "HMSET_BUSY"},
	{"gearmonkey.done.order", "HMSET_DONE"},
	{"gearmonkey.done.order", "PUBLISH_FINISH"},
	{"gearmonkey.done.expire-job", "EXPIRE_JOB"},
	{"gearmonkey.done.lock", "LPUSH_LOCK"},
	{"gearmonkey.done.lock-expires", "EXPIRE_LOCK"},
}

// typeLiterals finds the string literals of a file that name message types: each of their words, separated by spaces,
// commas or bars, is the name of a message type of one protocol, or a prefix of several names, such as SUBMIT_ or SUBMIT_*.
// A name without underscores and hyphens, such as "put" or "OK", may be an English word: it counts only in files that
// import package codec, because other files do not handle messages, and in cmd only if it is compared or looked up.
func typeLiterals(s *source, protocols []*codec.Protocol) (found []*ast.BasicLit) {
	handles := slices.ContainsFunc(s.imports(), func(i string) bool { return i == module+"/codec" || strings.HasPrefix(i, module+"/codec/") })
	other := map[*ast.BasicLit]bool{} // tags of struct fields, and flags of commands
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			other[n.Tag] = true
		case *ast.CallExpr:
			if name := qualified(n.Fun); strings.HasPrefix(s.name, "cmd/") && !strings.HasSuffix(name, "Named") && !strings.HasPrefix(name, "slices.") {
				for _, a := range n.Args {
					if l, ok := a.(*ast.BasicLit); ok && plainWord(l) {
						other[l] = true
					}
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && !other[n] && (handles || !plainWord(n)) && slices.ContainsFunc(protocols, func(p *codec.Protocol) bool { return namesTypes(p, n) }) {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

func plainWord(l *ast.BasicLit) bool { return !strings.ContainsAny(l.Value, "_-") }

// namesTypes reports whether each word of a literal is the name of a message type, or a prefix of several names.
func namesTypes(p *codec.Protocol, l *ast.BasicLit) bool {
	text, err := strconv.Unquote(l.Value)
	words := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" ,|", c) })
	for _, w := range words {
		prefix := strings.TrimSuffix(w, "*")
		many := prefix != w || strings.HasSuffix(w, "_") || strings.HasSuffix(w, "-")
		if p.TypeNamed(w) == nil && !(many && len(prefix) > 2 && slices.ContainsFunc(p.Types, func(t *codec.Type) bool { return strings.HasPrefix(t.Name, prefix) })) {
			return false
		}
	}
	return err == nil && len(words) > 0
}

// TestMessageTypesAreNotNamed finds code that serves all protocols and nevertheless names message types. Such code must
// read the properties of a type from its declaration.
func TestMessageTypesAreNotNamed(t *testing.T) {
	var protocols []*codec.Protocol
	for _, e := range catalog.All() {
		protocols = append(protocols, e.Protocol)
	}
	unused := maps.Clone(notTypes)
	listed := map[string]bool{}
	for _, l := range aboutOneType {
		listed[l.literal] = true
		named := func(p *codec.Protocol) bool { return p.Rule(l.rule) != nil && p.TypeNamed(l.literal) != nil }
		if !slices.ContainsFunc(protocols, named) {
			t.Errorf("no protocol has a rule %s and a message type %s", l.rule, l.literal)
		}
	}
	counts := map[string]int{}
	for _, s := range sources(t) {
		if s.test || slices.ContainsFunc(mayNameTypes, func(pattern string) bool {
			pkg, _ := path.Match(pattern, s.pkg)
			file, _ := path.Match(pattern, s.name)
			return pkg || file
		}) {
			continue
		}
		for _, l := range typeLiterals(&s, protocols) {
			key := s.name + ": " + l.Value
			text, _ := strconv.Unquote(l.Value)
			if delete(unused, key); notTypes[key] == "" && !(s.pkg == "judge" && listed[text]) {
				counts[s.pkg]++
				t.Errorf("%s: %s", s.fset.Position(l.Pos()), l.Value)
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(counts)) {
		t.Errorf("%s: %d literals name message types: use their declarations (Type.Does, Field.Means, ...)", pkg, counts[pkg])
	}
	for key := range unused {
		t.Errorf("%s: listed in notTypes, but does not exist", key)
	}
}

// TestTypeLiteralsAreFound tests that the check for names of message types finds them in string literals, and does not
// take English words and other text for them.
func TestTypeLiteralsAreFound(t *testing.T) {
	p := catalog.All()[0].Protocol
	for body, want := range map[string]int{
		`var x = "SUBMIT_JOB"`:                                        1,
		`var x = "CAN_DO GRAB_JOB|NOOP"`:                              1,
		`var x = []string{"SUBMIT_*", "WORK_"}`:                       2,
		`var x = "CAN_DO or not"`:                                     0,
		`var x = "status"`:                                            0,
		`import _ "jobwire/codec"; var x = "status"`:                  1,
		`import _ "jobwire/codec"; func f() { if x.Name == "OK" {} }`: 1,
		"type x struct { y int `status` }":                            0,
	} {
		s, err := parse("a/a.go", []byte("package a\n"+body))
		if err != nil {
			t.Fatal(err)
		}
		if got := typeLiterals(&s, []*codec.Protocol{p}); len(got) != want {
			t.Errorf("%s: %d literals, want %d", body, len(got), want)
		}
	}
}
