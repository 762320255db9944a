package fuzz

import (
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
	"jobwire/conform"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/internal/peers"
)

// realServers are the servers whose findings the oracles must report, with their sections in docs/findings.md.
var realServers = []struct {
	peer, section string
	p             *codec.Protocol
	silent        map[string]string // why an oracle reports nothing, by the name of a finding or the family of a case
}{
	{"gearmand", "C++ gearmand 1.1.20", gearman.Protocol, silentOfGearmand},
	{"gearmand-perl", "Gearman::Server 1.130 (Perl)", gearman.Protocol, silentOfPerl},
	{"beanstalkd", "beanstalkd 1.12", beanstalk.Protocol, silentOfBeanstalkd},
}

// Reasons why the oracles report nothing.
const (
	ofProcess    = "only the time, memory or descriptors of the process show it, which the executor does not observe"
	ofSetup      = "it needs another setup of the server or of its machine"
	sometimes    = "it depends on the machine whether the server stops answering other connections"
	noShutdown   = "the executor never sends a request that ends the server"
	unspecified  = "the specification leaves it open"
	afterIllegal = "the next packet completes the illegal one, and the server may close the connection after it"
	lostFraming  = "after bytes whose end is unknown, no barrier shows that a reply is missing"
)

var silentOfGearmand = map[string]string{
	"gearmand-abandoned-job-memory":  ofProcess,
	"gearmand-cost-of-functions":     ofProcess,
	"gearmand-descriptor-limit-busy": ofSetup,
	"gearmand-freed-workload":        "only a memory checker shows it",
	"gearmand-missing-arguments":     afterIllegal,
	"gearmand-stored-queue-keys":     ofSetup,
	"gearmand-unread-replies":        ofProcess,

	"gearman.submit.workload-before-result": "only a memory checker shows it",

	"gearman.args.missing-epoch":        afterIllegal,
	"gearman.args.missing-reduce":       afterIllegal,
	"gearman.args.missing-submit":       afterIllegal,
	"gearman.shutdown.graceful":         noShutdown,
	"gearman.shutdown.graceful-refuses": noShutdown,
	"gearman.shutdown.graceful-waiting": noShutdown,
	"gearman.shutdown.now":              noShutdown,
}

var silentOfPerl = map[string]string{
	"perl-server-abandoned-job-memory": ofProcess,
	"perl-server-cost-of-functions":    ofProcess,
	"perl-server-endless-line":         sometimes,
	"perl-server-err-without-text":     "the contract does not say how a server may reply to an unknown text command",
	"perl-server-unread-replies":       ofProcess,
	"perl-server-wrong-magic":          lostFraming,

	"gearman.admin.odd-line":       "the contract does not say how a server may reply to an unknown text command",
	"gearman.packet.magic-unknown": lostFraming,
}

var silentOfBeanstalkd = map[string]string{
	"beanstalkd-cost-of-tubes":         ofProcess,
	"beanstalkd-descriptor-limit-busy": ofSetup,
	"beanstalkd-rare-crash":            "the messages that cause it are not known",
	"beanstalkd-urgent-data":           ofProcess,
	"beanstalkd-waiters-order":         unspecified,

	"beanstalk.waiters.first-come": unspecified,
}

var (
	findingBegin = regexp.MustCompile(`(?m)^<a id="([a-z0-9-]+)"></a>\n#### `)
	findingWire  = regexp.MustCompile("(?ms)^```wire [^\n]*\n(.*?)^```$")
)

// transcriptsOf returns the transcripts of the findings in a section of docs/findings.md, by the name of the finding.
func transcriptsOf(t *testing.T, p *codec.Protocol, section string) map[string][]*transcript.Script {
	page, err := os.ReadFile("../docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "\n### "+section+"\n")
	text, _, _ = strings.Cut(text, "\n### ")
	heads := findingBegin.FindAllStringSubmatchIndex(text, -1)
	if !found || len(heads) == 0 {
		t.Fatalf("docs/findings.md has no findings about %s", section)
	}
	all := map[string][]*transcript.Script{}
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		name := text[h[2]:h[3]]
		all[name] = nil
		for _, m := range findingWire.FindAllStringSubmatch(text[h[1]:end], -1) {
			scripts, err := transcript.Parse(p, name, []byte(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = append(all[name], scripts...)
		}
	}
	return all
}

// withPauses returns a transcript with a pause before each message of the server that may come after more than a second.
func withPauses(s *transcript.Script) *transcript.Script {
	p := *s
	p.Steps = nil
	for _, st := range s.Steps {
		if wait := st.Within - time.Second; st.From == codec.Server && wait > 0 {
			p.Steps = append(p.Steps, transcript.Step{From: codec.Server, Peer: st.Peer, Choices: []transcript.Choice{{Verb: transcript.Nothing, For: wait}}})
		}
		p.Steps = append(p.Steps, st)
	}
	return &p
}

// reports runs the messages of transcripts, each on a new server, until an oracle reports a fault, and returns it.
func reports(t *testing.T, peer string, p *codec.Protocol, scripts ...*transcript.Script) *exec.Fault {
	for _, s := range scripts {
		in := input.FromScript(withPauses(s))
		if in == nil {
			continue
		}
		srv := peers.Start(t, peer)
		x, err := exec.NewExecutor(srv, 0, exec.NewBarrier(p, p.Barriers[0]), &input.Known{}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		x.Thorough = true
		x.Ping()
		v := exec.Verdict(srv, x.Execute(in, "").Fault)
		x.CloseCanary()
		if v != nil {
			return v
		}
	}
	return nil
}

// TestFindingsAreReported tests that the oracles report a fault when the executor gets exactly the messages of a
// finding in docs/findings.md or, without -short, of a case that a real server fails.
func TestFindingsAreReported(t *testing.T) {
	t.Parallel()
	for _, srv := range realServers {
		t.Run(srv.peer, func(t *testing.T) {
			t.Parallel()
			peers.Need(t, srv.peer)
			all := transcriptsOf(t, srv.p, srv.section)
			if !testing.Short() {
				addFailing(t, all, srv.peer, srv.p)
			}
			var reported atomic.Int64
			t.Cleanup(func() { t.Logf("%d of %d findings and failing cases are reported", reported.Load(), len(all)) })
			for name, scripts := range all {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					why := srv.silent[name]
					var v *exec.Fault
					for try := 0; try < 3 && v == nil && (try == 0 || why == ""); try++ { // some faults depend on chance
						v = reports(t, srv.peer, srv.p, scripts...)
					}
					switch {
					case v == nil && why == "":
						t.Error("no oracle reports a fault")
					case v != nil && why != "" && why != sometimes:
						t.Errorf("an oracle reports a fault, although the list says that none does (%s): %v", why, v)
					}
					if v != nil {
						t.Log(v)
						reported.Add(1)
					}
				})
			}
		})
	}
}

// addFailing adds the cases that a real server fails according to its profile, by their family.
func addFailing(t *testing.T, all map[string][]*transcript.Script, peer string, p *codec.Protocol) {
	suite := suiteOf(t, p)
	profile, err := conform.LoadProfile(peer, suite)
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range profile.Known {
		cases, err := suite.Select([]string{"case:" + known.Cases}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases.Cases {
			if c.Program == "" && len(c.Watch) == 0 && c.Descriptors == 0 { // the others observe the process of the server
				all[c.Family] = append(all[c.Family], c.Script)
			}
		}
	}
}
