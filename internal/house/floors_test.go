package house

import (
	"fmt"
	"path"
	"strings"
	"testing"
)

const module = "jobwire"

// A floor says which packages of this module the packages it stands for may
// import. Patterns are those of path.Match; of several rows that match a package
// the first counts, so exceptions stand first. Everything below internal may be
// imported by every floor above it.
type floor struct {
	packages string
	imports  []string
}

// floors lists the house from the bottom up. Tests may import any package but
// commands; what they need beside it is in the fences below.
var floors = []floor{
	{"internal/*", []string{"internal/*"}},
	{"corpus", nil},

	{"codec", nil},
	{"codec/internal/*", []string{"codec", "codec/transcript", "corpus"}},
	{"codec/transcript", []string{"codec"}}, // for any protocol: it knows none
	{"codec/gearmonkey", []string{"codec", "codec/resp"}},
	{"codec/*", []string{"codec"}},

	{"refserver", []string{"codec", "internal/*"}},
	{"refserver/gearmonkey", []string{"codec", "codec/gearmonkey", "codec/resp", "refserver", "internal/*"}},
	{"refserver/internal/peertest", []string{"codec", "refserver"}},
	{"refserver/internal/*", []string{"codec"}},
	{"refserver/beanstalk/mutants", []string{"codec", "codec/beanstalk", "refserver", "refserver/beanstalk", "refserver/mutant", "internal/*"}},
	{"refserver/danga/mutants", []string{"codec", "codec/danga", "refserver", "refserver/danga", "refserver/mutant", "internal/*"}},
	{"refserver/gearmonkey/mutants", []string{"codec", "codec/gearmonkey", "codec/resp", "refserver", "refserver/gearmonkey", "refserver/mutant", "internal/*"}},
	{"refserver/gearman/mutants", []string{"codec", "codec/gearman", "refserver", "refserver/gearman", "refserver/mutant", "internal/*"}},
	{"refserver/*", []string{"codec", "codec/{same}", "refserver", "refserver/internal/*", "internal/*"}},
	{"refpeer/gearmonkey/mutants", []string{"codec", "codec/gearmonkey", "refpeer/gearmonkey"}},
	{"refpeer/internal/line", []string{"codec", "codec/transcript"}}, // for the words of tasks
	{"refpeer/internal/drivetest", []string{"codec", "refserver"}},
	{"refpeer/internal/faults", []string{"codec", "refpeer/internal/line"}},
	{"refpeer/gearman/mutants", []string{"codec", "codec/gearman", "refpeer/gearman", "refpeer/internal/*"}},
	{"refpeer/danga/mutants", []string{"codec", "codec/danga", "refpeer/danga", "refpeer/internal/*"}},
	{"refpeer/*", []string{"codec", "codec/{same}", "refpeer/internal/*"}},
	{"play", []string{"codec", "codec/transcript", "internal/*"}},
	{"conform/mutanttest", []string{"codec", "conform"}},
	{"conform", []string{"codec", "codec/transcript", "corpus", "play", "internal/*"}},
	{"loadgen", []string{"codec", "codec/*", "internal/*"}},
	{"judge", []string{"codec", "codec/*"}},
	{"pcap", []string{"codec", "codec/*", "judge", "internal/*"}},
	{"audit", []string{"codec", "codec/*", "judge", "play", "internal/*"}},
	{"pcap/internal/*", nil},
	{"fuzz/gen", []string{"codec"}}, // from any protocol's rows: it knows none
	{"fuzz/planted", []string{"codec", "codec/*", "refserver", "refserver/*", "internal/*"}},
	{"fuzz/native", []string{"codec", "codec/transcript", "corpus", "fuzz/gen", "fuzz/laws"}},
	{"fuzz/native/*", nil}, // tests alone
	{"fuzz/*", []string{"codec", "codec/*", "corpus", "fuzz/gen", "play", "internal/*"}},
	{"fuzz", []string{"codec", "codec/*", "corpus", "fuzz/*", "play", "internal/*"}},

	{"examples", nil},
	{"cmd/*", []string{"*", "*/*", "*/*/*"}},
}

// A fence says who may import a module from outside. Modules without a fence
// are not to be imported at all: a new one is argued for by a new row.
type fence struct {
	module   string
	packages []string
	tests    bool // tests of all packages may import it too
}

var fences = []fence{
	{"github.com/google/gopacket", []string{"pcap"}, false},
	{"github.com/klauspost/compress/zstd", []string{"pcap"}, false}, // captures come packed with it
	{"github.com/leanovate/gopter", []string{"fuzz"}, true},
	{"github.com/HdrHistogram/hdrhistogram-go", []string{"loadgen"}, false},
	{"github.com/anishathalye/porcupine", []string{"loadgen"}, false}, // whether a history is linearizable
	{"golang.org/x/sys", []string{"loadgen", "pcap"}, false},          // timers that are on time; packets off an interface
	{"github.com/spf13/cobra", []string{"cmd/*"}, false},
	{"github.com/spf13/pflag", []string{"cmd/*"}, false}, // the flags that cobra is made of
	{"golang.org/x/term", []string{"cmd/*"}, false},
	{"github.com/alicebob/miniredis/v2", []string{"refserver/gearmonkey"}, false}, // the Redis that GearMonkey lives in
	{"github.com/goccy/go-yaml", []string{"codec/beanstalk", "conform"}, true},

	{"github.com/beanstalkd/go-beanstalk", nil, true}, // a client that the reference server is run against
	{"github.com/google/go-cmp", nil, true},
	{"github.com/rogpeppe/go-internal", nil, true},
	{"go.uber.org/goleak", nil, true},
}

// judgeImport returns what is wrong with pkg importing imp, or "". Both are
// import paths; pkg is relative to the module.
func judgeImport(pkg, imp string, test bool) string {
	first, _, _ := strings.Cut(imp, "/")
	switch {
	case imp == module || strings.HasPrefix(imp, module+"/"):
		return judgeFloor(pkg, strings.TrimPrefix(strings.TrimPrefix(imp, module), "/"), test)
	case imp == "C":
		return "the house is built without C"
	case !strings.Contains(first, "."):
		return "" // the standard library
	}
	for _, f := range fences {
		if imp != f.module && !strings.HasPrefix(imp, f.module+"/") {
			continue
		}
		if test && f.tests || matchAny(f.packages, pkg, pkg) {
			return ""
		}
		where := append([]string(nil), f.packages...)
		if f.tests {
			where = append(where, "tests")
		}
		return fmt.Sprintf("%s is fenced: only %s may import it", f.module, strings.Join(where, " and "))
	}
	return "no fence in floors_test.go admits this module"
}

func judgeFloor(pkg, imp string, test bool) string {
	if ok, _ := path.Match("cmd/*", imp); ok {
		return "nothing imports a command"
	}
	for _, f := range floors {
		if ok, _ := path.Match(f.packages, pkg); !ok {
			continue
		}
		if test || matchAny(f.imports, imp, pkg) {
			return ""
		}
		may := "nothing of this module"
		if len(f.imports) > 0 {
			may = "only " + strings.Join(f.imports, ", ")
		}
		return fmt.Sprintf("the floor %s may import %s", f.packages, may)
	}
	return "no floor in floors_test.go holds this package"
}

// matchAny reports whether one of the patterns matches name. {same} in a pattern
// is the last element of pkg.
func matchAny(patterns []string, name, pkg string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(strings.ReplaceAll(p, "{same}", path.Base(pkg)), name); ok {
			return true
		}
	}
	return false
}

func TestFloorsAndFences(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range s.imports() {
			if wrong := judgeImport(s.pkg, imp, s.test); wrong != "" {
				t.Errorf("%s imports %s: %s", s.name, imp, wrong)
			}
		}
	}
}

func TestFloorsRefuse(t *testing.T) {
	tests := []struct {
		pkg, imp string
		test     bool
		rule     string // part of the refusal; "" is none
	}{
		{"codec", "bytes", false, ""},
		{"codec", "github.com/google/go-cmp/cmp", false, "only tests may import it"},
		{"codec", "github.com/google/go-cmp/cmp", true, ""},
		{"codec", "jobwire/internal/target", false, "nothing of this module"},
		{"codec", "jobwire/codec/gearman", false, "nothing of this module"},
		{"codec", "jobwire/codec/gearman", true, ""},
		{"codec/gearman", "jobwire/codec", false, ""},
		{"codec/gearman", "jobwire/codec/transcript", false, "the floor codec/* may import only codec"},
		{"codec/gearman", "jobwire/codec/beanstalk", false, "only codec"},
		{"codec/gearman", "jobwire/codec/internal/codectest", false, "only codec"},
		{"codec/internal/codectest", "jobwire/corpus", false, ""},
		{"codec/internal/codectest", "jobwire/codec/gearman", false, "only codec, codec/transcript, corpus"},
		{"codec/beanstalk", "github.com/goccy/go-yaml/parser", false, ""},
		{"codec/gearman", "github.com/goccy/go-yaml", false, "only codec/beanstalk"},
		{"refserver/gearmonkey", "github.com/alicebob/miniredis/v2/server", false, ""},
		{"conform", "github.com/alicebob/miniredis/v2", true, "only refserver/gearmonkey"},
		{"codec/gearmonkey", "jobwire/codec/resp", false, ""},
		{"codec/gearmonkey", "jobwire/codec/gearman", false, "only codec, codec/resp"},
		{"codec/transcript", "jobwire/codec/gearman", false, "only codec"},
		{"codec/transcript", "jobwire/codec/gearman", true, ""},
		{"corpus", "jobwire/codec", false, "nothing of this module"},
		{"internal/peers", "jobwire/internal/target", false, ""},
		{"internal/target", "jobwire/codec", false, "only internal/*"},
		{"refserver", "jobwire/codec/gearman", false, "only codec"},
		{"refserver/gearman", "jobwire/codec/gearman", false, ""},
		{"refserver/gearman", "jobwire/codec/danga", false, "the floor refserver/*"},
		{"refserver/gearman", "jobwire/conform", false, "the floor refserver/*"},
		{"refserver/gearman", "jobwire/conform", true, ""},
		{"refpeer/gearmonkey", "jobwire/codec/gearmonkey", false, ""},
		{"refpeer/gearmonkey", "jobwire/codec/resp", false, "the floor refpeer/*"},
		{"refpeer/gearmonkey", "jobwire/refserver", false, "the floor refpeer/*"},
		{"refpeer/gearmonkey", "jobwire/refserver", true, ""},
		{"play", "jobwire/codec/transcript", false, ""},
		{"play", "jobwire/codec/gearman", false, "the floor play"},
		{"play", "jobwire/refserver", false, "the floor play"},
		{"conform", "jobwire/play", false, ""},
		{"conform", "jobwire/codec/gearman", false, "the floor conform"},
		{"conform", "jobwire/fuzz", false, "the floor conform"},
		{"pcap", "jobwire/loadgen", false, "the floor pcap"},
		{"pcap", "jobwire/judge", false, ""},
		{"audit", "jobwire/judge", false, ""},
		{"audit", "jobwire/refserver", false, "the floor audit"},
		{"judge", "jobwire/pcap", false, "the floor judge"},
		{"loadgen", "jobwire/refserver/gearman", false, "the floor loadgen"},
		{"fuzz", "jobwire/conform", false, "the floor fuzz"},
		{"cmd/jobwire", "jobwire/refserver/gearman", false, ""},
		{"cmd/jobwire", "jobwire/pcap", false, ""},
		{"play", "jobwire/cmd/jobwire", true, "nothing imports a command"},
		{"somewhere", "jobwire/codec", false, "no floor"},
		{"codec/gearman/deeper", "jobwire/codec", false, "no floor"},

		{"pcap", "github.com/google/gopacket/layers", false, ""},
		{"play", "github.com/google/gopacket", false, "only pcap may import it"},
		{"play", "github.com/google/gopacket", true, "only pcap"},
		{"pcap", "github.com/google/gopacketry", false, "no fence"},
		{"fuzz", "github.com/leanovate/gopter", false, ""},
		{"codec/gearman", "github.com/leanovate/gopter/prop", true, ""},
		{"codec/gearman", "github.com/leanovate/gopter/prop", false, "only fuzz and tests"},
		{"conform", "github.com/HdrHistogram/hdrhistogram-go", true, "only loadgen"},
		{"conform", "github.com/spf13/cobra", false, "only cmd/*"},
		{"cmd/jobwire", "github.com/spf13/cobra", false, ""},
		{"cmd/jobwire", "example.com/left-pad", false, "no fence"},
		{"cmd/jobwire", "C", false, "without C"},
	}
	for _, tt := range tests {
		got := judgeImport(tt.pkg, tt.imp, tt.test)
		if (tt.rule == "") != (got == "") || !strings.Contains(got, tt.rule) {
			t.Errorf("%s imports %s (test: %v): got %q, want %q", tt.pkg, tt.imp, tt.test, got, tt.rule)
		}
	}
}
