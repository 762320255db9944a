package layout

import (
	"fmt"
	"path"
	"strings"
	"testing"
)

const module = "jobwire"

// A layer lists what a group of packages may import from this module. packages and imports are patterns of path.Match. The
// first layer that matches a package applies, so exceptions come first.
type layer struct {
	packages string
	imports  []string
}

// layers lists the packages of this module from the lowest layer to the highest. Tests may import any package except
// commands.
var layers = []layer{
	{"internal/reference", []string{"catalog", "codec", "codec/transcript", "corpus"}}, // a command
	{"internal/site", []string{"catalog", "codec", "conform", "internal/*"}},           // a command
	{"internal/*", []string{"internal/*"}},
	{"corpus", nil},

	{"codec", nil},
	{"codec/internal/*", []string{"codec", "codec/transcript", "corpus"}},
	{"codec/transcript", []string{"codec", "internal/prose"}}, // serves any protocol
	{"codec/vectors", []string{"codec", "codec/transcript", "corpus"}},
	{"codec/gearmonkey", []string{"codec", "codec/resp"}},
	{"codec/*", []string{"codec"}},

	{"refserver", []string{"codec", "internal/*"}},
	{"refserver/internal/peertest", []string{"codec", "refserver", "internal/memnet", "internal/transport"}},
	{"refserver/internal/*", []string{"codec"}},
	{"refserver/*/mutants", []string{"codec", "codec/{protocol}", "codec/resp", "refserver", "refserver/{protocol}", "refserver/inject", "internal/*"}},
	{"refserver/*", []string{"codec", "codec/{protocol}", "codec/resp", "refserver", "refserver/internal/*", "internal/*"}},
	{"refpeer/internal/peer", []string{"codec", "codec/transcript", "internal/transport"}}, // parses task lines
	{"refpeer/internal/drivetest", []string{"audit", "codec", "internal/target", "internal/verdict", "refpeer/internal/peer", "refserver"}},
	{"refpeer/internal/faults", []string{"codec", "refpeer/internal/peer", "refserver/inject", "internal/mutant"}},
	{"refpeer/*/mutants", []string{"refpeer/{protocol}", "refpeer/internal/*", "internal/mutant"}},
	{"refpeer/*", []string{"codec", "codec/{protocol}", "refpeer/internal/*"}},
	{"play", []string{"codec", "codec/transcript", "internal/*"}},
	{"conform/servertest", nil}, // tests only
	{"conform/mutanttest", []string{"codec", "conform", "internal/mutant"}},
	{"conform/report", []string{"codec", "codec/transcript", "conform", "play", "internal/*"}},
	{"conform/casedata", []string{"codec", "codec/transcript", "conform"}},
	{"conform/selftest", []string{"conform", "conform/report", "internal/*"}},
	{"conform", []string{"codec", "codec/transcript", "corpus", "play", "internal/*"}},
	{"loadgen", []string{"codec", "codec/transcript", "loadgen/latency", "loadgen/machine", "loadgen/schedule", "internal/*"}},
	{"loadgen/internal/*", []string{"codec/*", "loadgen", "loadgen/*", "internal/*"}}, // for tests
	{"loadgen/protocols", []string{"codec", "codec/*", "loadgen"}},
	{"loadgen/format", []string{"loadgen", "loadgen/*", "internal/*"}},
	{"loadgen/experiment", []string{"loadgen", "loadgen/latency", "loadgen/machine", "loadgen/report", "loadgen/schedule", "internal/*"}},
	{"loadgen/report", []string{"loadgen", "loadgen/latency", "loadgen/machine", "loadgen/schedule", "internal/*"}},
	{"loadgen/*", []string{"internal/*"}},
	{"judge", []string{"codec", "codec/*"}},
	{"pcap", []string{"codec", "codec/*", "judge", "pcap/decrypt", "pcap/internal/*", "internal/*"}},
	{"audit/internal/*", nil},
	{"audit/behavior", []string{"codec"}}, // serves any protocol
	{"audit", []string{"audit/behavior", "codec", "codec/*", "judge", "play", "internal/*"}},
	{"pcap/decrypt", []string{"internal/textfile"}},
	{"pcap/internal/pcaptest", []string{"catalog", "codec", "codec/transcript", "pcap", "play"}},
	{"pcap/internal/reassembly", []string{"pcap/internal/headers"}},
	{"pcap/internal/*", nil},
	{"pcap/report", []string{"codec", "codec/transcript", "pcap", "pcap/jobs", "internal/*"}},
	{"pcap/*", []string{"codec", "codec/transcript", "pcap", "internal/*"}},
	{"export", []string{"codec", "internal/*"}}, // serves any protocol
	{"fuzz/gen", []string{"codec"}},             // serves any protocol
	{"fuzz/faults", []string{"refserver/inject"}},
	{"fuzz/native", []string{"codec", "codec/transcript", "corpus", "fuzz/gen", "fuzz/laws"}},
	{"fuzz/native/*", nil}, // tests only
	{"fuzz/input", []string{"codec", "codec/transcript", "fuzz/gen", "internal/*"}},
	{"fuzz/exec", []string{"codec", "codec/transcript", "fuzz/input", "fuzz/model", "internal/*"}},
	{"fuzz/triage", []string{"codec", "codec/transcript", "fuzz/exec", "fuzz/input", "fuzz/model", "fuzz/transcribe", "internal/*", "play"}},
	{"fuzz/transcribe", []string{"codec", "codec/transcript", "fuzz/exec", "fuzz/input", "internal/watch", "play"}},
	{"fuzz/internal/fuzztest", []string{"catalog", "codec", "codec/transcript", "fuzz/faults", "fuzz/input", "internal/target"}},
	{"fuzz/*", []string{"codec", "codec/*", "corpus", "fuzz/gen", "play", "internal/*"}},
	{"fuzz", []string{"codec", "fuzz/exec", "fuzz/input", "fuzz/model", "fuzz/triage", "internal/*"}},

	{"catalog", []string{"audit", "codec", "codec/*", "conform", "corpus", "fuzz/*", "judge", "loadgen", "loadgen/protocols", "refserver", "refserver/*", "refserver/*/mutants", "refpeer/*", "refpeer/*/mutants", "internal/mutant"}},
	{"jobtest", []string{"audit", "catalog", "codec", "codec/transcript", "conform", "conform/report", "play", "refserver", "internal/*"}},
	{"examples", []string{"codec", "conform", "internal/peers"}}, // for tests
	{"examples/ci", nil},           // tests only
	{"examples/cases-runner", nil}, // tests only
	{"examples/goworker", nil},
	{"cmd/internal/cli", []string{"internal/*"}}, // no command in particular
	{"cmd/internal/connect", []string{"catalog", "codec", "codec/transcript", "conform", "fuzz/exec", "refserver", "cmd/internal/cli", "internal/*"}},
	{"cmd/internal/capturefile", []string{"codec", "codec/transcript", "conform", "pcap", "play"}},
	{"cmd/internal/*cmd", []string{"*", "*/*", "cmd/internal/cli", "cmd/internal/connect", "cmd/internal/capturefile"}},
	{"cmd/*", []string{"*", "*/*", "*/*/*"}},
}

// A dependency is an external module that some packages of this module may import. A new dependency needs an entry here,
// with its justification in the commit that adds it.
type dependency struct {
	module   string
	packages []string
	tests    bool // tests of all packages may import it too
}

var dependencies = []dependency{
	{"github.com/gopacket/gopacket", []string{"pcap"}, false},
	{"github.com/yuin/goldmark", []string{"internal/site"}, false},               // Markdown
	{"golang.org/x/crypto/x509roots/fallback", []string{"internal/dist"}, false}, // root certificates of the container image
	{"golang.org/x/crypto", []string{"pcap/decrypt"}, false},                     // ChaCha20-Poly1305, and the format of handshakes
	{"github.com/klauspost/compress/zstd", []string{"pcap"}, false},              // compressed captures
	{"github.com/leanovate/gopter", []string{"fuzz"}, true},
	{"github.com/santhosh-tekuri/jsonschema/v6", []string{"internal/schemacheck"}, false}, // only in tests
	{"github.com/HdrHistogram/hdrhistogram-go", []string{"loadgen/*", "pcap/jobs"}, false},
	{"golang.org/x/net/bpf", []string{"pcap"}, false},                 // the kernel filter of live captures
	{"golang.org/x/perf/benchmath", []string{"loadgen/*"}, false},     // significance tests
	{"github.com/anishathalye/porcupine", []string{"loadgen"}, false}, // checks that a history is linearizable
	// timers; live capture; limits of a process
	{"golang.org/x/sys", []string{"loadgen", "pcap", "internal/target", "internal/watch"}, false},
	{"github.com/spf13/cobra", []string{"cmd/*", "cmd/internal/*"}, false},
	{"github.com/spf13/pflag", []string{"cmd/*", "cmd/internal/*"}, false}, // flags of cobra commands
	{"golang.org/x/term", []string{"cmd/internal/cli"}, false},
	{"charm.land/bubbletea/v2", []string{"internal/screen"}, false},               // draws live displays
	{"github.com/charmbracelet/x/ansi", []string{"internal/screen"}, false},       // the width of text on a terminal
	{"github.com/charmbracelet/colorprofile", []string{"internal/screen"}, false}, // an option of bubbletea
	{"github.com/alicebob/miniredis/v2", []string{"refserver/gearmonkey"}, false}, // the Redis server for GearMonkey
	{"github.com/goccy/go-yaml", []string{"conform", "examples", "refserver/inject"}, true},
	{"github.com/expr-lang/expr", []string{"refserver/inject"}, false}, // the conditions and values of faults

	{"golang.org/x/mod", []string{"internal/publish"}, false},                   // paths and archives of modules
	{"github.com/beanstalkd/go-beanstalk", []string{"examples/goworker"}, true}, // a client for tests of the reference server
	{"github.com/charmbracelet/x/vt", nil, true},                                // a virtual terminal
	{"github.com/google/go-cmp", nil, true},
	{"github.com/rogpeppe/go-internal", nil, true},
	{"go.uber.org/goleak", nil, true},
}

// checkImport returns why pkg must not import imp, or "". pkg is relative to the module; imp is an import path.
func checkImport(pkg, imp string, test bool) string {
	first, _, _ := strings.Cut(imp, "/")
	switch {
	case imp == module || strings.HasPrefix(imp, module+"/"):
		return checkLayer(pkg, strings.TrimPrefix(strings.TrimPrefix(imp, module), "/"), test)
	case imp == "C":
		return "jobwire is built without C"
	case !strings.Contains(first, "."):
		return "" // the standard library
	}
	for _, f := range dependencies {
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
		return fmt.Sprintf("only %[2]s may import %[1]s", f.module, strings.Join(where, " and "))
	}
	return "imports_test.go lists no such dependency"
}

func checkLayer(pkg, imp string, test bool) string {
	if ok, _ := path.Match("cmd/*", imp); ok {
		return "nothing imports a command"
	}
	for _, f := range layers {
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
		return fmt.Sprintf("the layer %s may import %s", f.packages, may)
	}
	return "no layer in imports_test.go contains this package"
}

// matchAny reports whether one of the patterns matches name. {protocol} in a pattern is replaced by the second element of
// pkg.
func matchAny(patterns []string, name, pkg string) bool {
	_, protocol, _ := strings.Cut(pkg, "/")
	protocol, _, _ = strings.Cut(protocol, "/")
	for _, p := range patterns {
		if ok, _ := path.Match(strings.ReplaceAll(p, "{protocol}", protocol), name); ok {
			return true
		}
	}
	return false
}

// TestImports tests that each package imports only what its layer allows.
func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range s.imports() {
			if wrong := checkImport(s.pkg, imp, s.test); wrong != "" {
				t.Errorf("%s imports %s: %s", s.name, imp, wrong)
			}
		}
	}
}

// TestImportsAreRejected tests that the check of imports rejects imports that the layer of a package does not allow,
// with the reason, and accepts all others.
func TestImportsAreRejected(t *testing.T) {
	tests := []struct {
		pkg, imp string
		test     bool
		rule     string // part of the error; "": no error
	}{
		{"codec", "bytes", false, ""},
		{"codec", "github.com/google/go-cmp/cmp", false, "only tests may import"},
		{"codec", "github.com/google/go-cmp/cmp", true, ""},
		{"codec", "jobwire/internal/target", false, "nothing of this module"},
		{"codec", "jobwire/codec/gearman", false, "nothing of this module"},
		{"codec", "jobwire/codec/gearman", true, ""},
		{"codec/gearman", "jobwire/codec", false, ""},
		{"codec/gearman", "jobwire/codec/transcript", false, "the layer codec/* may import only codec"},
		{"codec/gearman", "jobwire/codec/beanstalk", false, "only codec"},
		{"codec/gearman", "jobwire/codec/internal/codectest", false, "only codec"},
		{"codec/internal/codectest", "jobwire/corpus", false, ""},
		{"codec/internal/codectest", "jobwire/codec/gearman", false, "only codec, codec/transcript, corpus"},
		{"conform", "github.com/goccy/go-yaml/parser", false, ""},
		{"codec/beanstalk", "github.com/goccy/go-yaml", false, "only conform and examples and refserver/inject and tests"},
		{"refserver/gearmonkey", "github.com/alicebob/miniredis/v2/server", false, ""},
		{"conform", "github.com/alicebob/miniredis/v2", true, "only refserver/gearmonkey"},
		{"codec/gearmonkey", "jobwire/codec/resp", false, ""},
		{"codec/gearmonkey", "jobwire/codec/gearman", false, "only codec, codec/resp"},
		{"codec/transcript", "jobwire/codec/gearman", false, "only codec, internal/prose"},
		{"codec/transcript", "jobwire/codec/gearman", true, ""},
		{"corpus", "jobwire/codec", false, "nothing of this module"},
		{"internal/peers", "jobwire/internal/target", false, ""},
		{"internal/target", "jobwire/codec", false, "only internal/*"},
		{"refserver", "jobwire/codec/gearman", false, "only codec"},
		{"refserver/gearman", "jobwire/codec/gearman", false, ""},
		{"refserver/gearman", "jobwire/codec/danga", false, "the layer refserver/*"},
		{"refserver/gearman/mutants", "jobwire/codec/gearman", false, ""},
		{"refserver/gearman/mutants", "jobwire/refserver/danga", false, "the layer refserver/*/mutants"},
		{"refserver/gearman", "jobwire/conform", false, "the layer refserver/*"},
		{"refserver/gearman", "jobwire/conform", true, ""},
		{"refpeer/gearmonkey", "jobwire/codec/gearmonkey", false, ""},
		{"refpeer/gearmonkey", "jobwire/codec/resp", false, "the layer refpeer/*"},
		{"refpeer/gearmonkey", "jobwire/refserver", false, "the layer refpeer/*"},
		{"refpeer/gearmonkey", "jobwire/refserver", true, ""},
		{"play", "jobwire/codec/transcript", false, ""},
		{"play", "jobwire/codec/gearman", false, "the layer play"},
		{"play", "jobwire/refserver", false, "the layer play"},
		{"conform", "jobwire/play", false, ""},
		{"conform", "jobwire/codec/gearman", false, "the layer conform"},
		{"conform", "jobwire/fuzz", false, "the layer conform"},
		{"pcap", "jobwire/loadgen", false, "the layer pcap"},
		{"pcap", "jobwire/judge", false, ""},
		{"pcap", "jobwire/pcap/jobs", false, "the layer pcap"},
		{"audit", "jobwire/judge", false, ""},
		{"audit", "jobwire/refserver", false, "the layer audit"},
		{"judge", "jobwire/pcap", false, "the layer judge"},
		{"loadgen", "jobwire/refserver/gearman", false, "the layer loadgen"},
		{"fuzz", "jobwire/conform", false, "the layer fuzz"},
		{"conform", "jobwire/catalog", false, "the layer conform"},
		{"catalog", "jobwire/refserver/gearman/mutants", false, ""},
		{"catalog", "jobwire/internal/target", false, "the layer catalog"},
		{"jobtest", "jobwire/catalog", false, ""},
		{"jobtest", "jobwire/refserver/gearman", false, "the layer jobtest"},
		{"catalog", "jobwire/jobtest", false, "the layer catalog"},
		{"cmd/jobwire", "jobwire/refserver/gearman", false, ""},
		{"cmd/jobwire", "jobwire/pcap", false, ""},
		{"play", "jobwire/cmd/jobwire", true, "nothing imports a command"},
		{"somewhere", "jobwire/codec", false, "no layer"},
		{"codec/gearman/deeper", "jobwire/codec", false, "no layer"},

		{"pcap", "github.com/gopacket/gopacket/layers", false, ""},
		{"play", "github.com/gopacket/gopacket", false, "only pcap may import"},
		{"play", "github.com/gopacket/gopacket", true, "only pcap"},
		{"pcap", "github.com/gopacket/gopacketry", false, "no such dependency"},
		{"fuzz", "github.com/leanovate/gopter", false, ""},
		{"codec/gearman", "github.com/leanovate/gopter/prop", true, ""},
		{"codec/gearman", "github.com/leanovate/gopter/prop", false, "only fuzz and tests"},
		{"conform", "github.com/HdrHistogram/hdrhistogram-go", true, "only loadgen"},
		{"conform", "github.com/spf13/cobra", false, "only cmd/*"},
		{"cmd/jobwire", "github.com/spf13/cobra", false, ""},
		{"cmd/jobwire", "example.com/left-pad", false, "no such dependency"},
		{"cmd/jobwire", "C", false, "without C"},
	}
	for _, tt := range tests {
		got := checkImport(tt.pkg, tt.imp, tt.test)
		if (tt.rule == "") != (got == "") || !strings.Contains(got, tt.rule) {
			t.Errorf("%s imports %s (test: %v): got %q, want %q", tt.pkg, tt.imp, tt.test, got, tt.rule)
		}
	}
}
