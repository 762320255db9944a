package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/internal/peers"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "6") // the recordings mostly wait; the command line can override this
	os.Exit(m.Run())
}

// recordings are the servers whose traffic is recorded.
var recordings = []struct {
	server   string // real server; "" for the reference server
	protocol *codec.Protocol
	needs    []string // client libraries
	traffic  string   // shell commands, in which $addr, $host and $port are the address of the server
}{
	{"gearmand", gearman.Protocol, []string{"gearman", "gearman-perl", "gearman-php"}, `
		gearman -h $host -p $port -w -c 3 -f tac -- tac & worker=$!
		for n in 1 100 5000; do seq $n | gearman -h $host -p $port -f tac >/dev/null; done
		wait $worker
		jobwire conform gearman --addr $addr --segments plain --cases examples/cases/gearman --program "Client=perl examples/gearman-perl/driver.pl {addr}" \
			--program "Worker=php examples/gearman-php/driver.php {host} {port}" --run "*.binary" --run "*.data" --run "*.background"
		jobwire conform gearman --addr $addr --run "case:gearman.status*" --run "case:gearman.handle*" --run "case:gearman.option*" --segments bytewise --timeout 500ms
		jobwire bench run gearman --addr $addr --quiet --scenario updates --count 100
		jobwire bench run gearman --addr $addr --quiet --scenario mixed --count 200 --window 16 --size 16-3000`},
	{"gearmand-perl", gearman.Protocol, []string{"gearman-perl"}, `
		jobwire conform gearman --addr $addr --segments plain,coalesced --run "case:gearman.admin*" --run "case:gearman.option*" --timeout 300ms
		jobwire bench run gearman --addr $addr --quiet --count 250`},
	{"beanstalkd", beanstalk.Protocol, []string{"beaneater", "pheanstalk"}, `
		jobwire conform beanstalk --addr $addr --segments plain --cases examples/cases/beanstalk --program "Client=ruby examples/beaneater/driver.rb {addr}" \
			--program "Worker=php examples/pheanstalk/driver.php {host} {port}" --run "*.binary*" --run "*.stats*"
		jobwire conform beanstalk --addr $addr --run "case:beanstalk.error*" --run "case:beanstalk.list*" --segments coalesced --timeout 500ms
		jobwire conform beanstalk --addr $addr --run "case:beanstalk.stats-job*" --segments bytewise --timeout 500ms
		jobwire conform beanstalk --addr $addr --run "case:beanstalk.size*" --segments plain --timeout 500ms
		jobwire bench run beanstalk --addr $addr --quiet --count 100 --size 16-3000`},
	{"redis-server", gearmonkey.Protocol, []string{"redis-cli"}, `
		printf '%s\n' "INCR uid:reverse" 'HMSET job:reverse:1 status idle input "one \r\n two\x00"' "LPUSH queue:reverse:normal 1" \
			"BRPOP queue:reverse:high queue:reverse:normal 0" "HGETALL job:reverse:1" | redis-cli -h $host -p $port
		jobwire conform gearmonkey --addr $addr --run "case:gearmonkey.form*" --run "case:gearmonkey.framing*" --segments coalesced --timeout 500ms
		jobwire conform gearmonkey --addr $addr --run "case:gearmonkey.event*" --run "case:gearmonkey.job*" --segments plain --timeout 500ms
		jobwire bench run gearmonkey --addr $addr --quiet --count 100 --size 16-3000`},
	// No server of the Danga draft exists other than jobwire's reference server.
	{"", danga.Protocol, nil, `
		jobwire conform danga --addr $addr --run "case:danga.connect*" --run "case:danga.text*" --run "case:danga.args*" --run "case:danga.length*" \
			--run "case:danga.magic*" --segments bytewise --timeout 500ms
		jobwire bench run danga --addr $addr --quiet --count 200`},
}

// TestTsharkAgreesOnRecordings records the traffic of real servers, clients and workers, of bench, and of cases of conform,
// which also send invalid messages. The output of tshark and of "jobwire decode --format json" must be the same for each message.
func TestTsharkAgreesOnRecordings(t *testing.T) {
	t.Parallel()
	tshark := peers.Need(t, "tshark")
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../cmd/jobwire").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	jobwire := filepath.Join(bin, "jobwire")
	for _, rec := range recordings {
		t.Run(rec.protocol.Name+" "+rec.server, func(t *testing.T) {
			if testing.Short() && rec.server == "gearmand-perl" {
				t.Skip("the messages resemble those of gearmand: run without -short")
			}
			t.Parallel()
			for _, name := range rec.needs {
				peers.Need(t, name)
			}
			capture := filepath.Join(t.TempDir(), "recording.pcapng")
			args := []string{"audit", rec.protocol.Name, "--pcap", capture, "--format", "json",
				"--program", "sh traffic.sh {addr} {host} {port}"}
			if rec.server != "" {
				args = append(args, "--addr", peers.Start(t, rec.server).Addr())
			}
			record(t, jobwire, rec.traffic, args)

			want := listed(t, jobwire, rec.protocol, capture)
			got := dissect(t, tshark, rec.protocol, capture, rec.protocol.DefaultPort, "-Y", "jobwire."+rec.protocol.Name)
			// The dissector rejects messages above its limit, which decode lists without their payload.
			long := func(m message) bool { return tooLong(rec.protocol, m.Rule) }
			got = slices.DeleteFunc(got, long)
			want = slices.DeleteFunc(want, long)
			types := map[string]bool{}
			var all []connection
			for i := range got {
				m := &got[i]
				if m.Args = ""; m.Rule == "" {
					m.Args = strings.Join(m.values, " ")
				}
				m.Args += fmt.Sprintf(" in frame %d", m.frame)
				types[m.Type] = true
				for len(all) <= m.Conn {
					all = append(all, connection{name: fmt.Sprintf("connection %d", len(all))})
				}
			}
			compare(t, all, got, want)
			if len(want) < 2000 || len(got) != len(want) {
				t.Errorf("%d messages of tshark, %d of jobwire; expected equal numbers of at least 2000", len(got), len(want))
			}
			t.Logf("%d connections, %d messages of %d types", len(all), len(want), len(types))
		})
	}
}

// tooLong reports whether the rule is about the length of a message, for which the dissector has a limit.
func tooLong(p *codec.Protocol, rule string) bool {
	f := &p.Framing
	return rule != "" && (f.Header != nil && rule == string(f.Header.Size) ||
		f.Lines != nil && (rule == string(f.Lines.Body[codec.Peer].Size) || rule == string(f.Lines.Body[codec.Server].Size)))
}

// record runs jobwire with a script that makes the traffic. The script is in the root of the repository.
func record(t *testing.T, jobwire, traffic string, args []string) {
	t.Helper()
	script := filepath.Join(t.TempDir(), "traffic.sh")
	if err := os.WriteFile(script, []byte("addr=$1 host=$2 port=$3\nset -x"+traffic+"\nexit 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range args {
		args[i] = strings.Replace(args[i], "traffic.sh", script, 1)
	}
	cmd := exec.CommandContext(t.Context(), jobwire, args...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(jobwire)+":"+os.Getenv("PATH"))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &output
	err := cmd.Run()
	if status := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &status) || status.ExitCode() != 1) { // 1: messages violate rules
		t.Fatalf("jobwire %q: %v: %s", args, err, output.Bytes())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%.20000s", output.Bytes())
		}
	})
}

// listed returns the messages that "jobwire decode --format json" lists.
func listed(t *testing.T, jobwire string, p *codec.Protocol, capture string) (list []message) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), jobwire, "decode", capture, "--format", "json", "--full", "--protocol", p.Name, "--port", fmt.Sprint(p.DefaultPort))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.Bytes())
	}
	lost, leftOut := map[string]bool{}, 0
	for line := range bytes.Lines(out) {
		var item struct {
			Kind, To, Type, Rule string
			Frame                int
			Peer                 netip.AddrPort
			Args, Repeated       json.RawMessage
		}
		if err := json.Unmarshal(line, &item); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		// The limits of the dissector, see docs/tasks/use-wireshark.md: decode continues after a message whose end is unknown,
		// and reports a message that is incomplete when the connection ends.
		direction := item.Peer.String() + item.To
		lost[direction] = lost[direction] || item.Kind == "unread"
		if lost[direction] && item.Kind != "unread" && item.Type != "" {
			leftOut++
			continue
		}
		if item.Kind != "message" && item.Kind != "violation" || item.Rule == string(p.Complete) {
			continue
		}
		m := message{Conn: int(item.Peer.Port()) - 40000, From: codec.Peer, Type: item.Type, Rule: item.Rule} // the ports in a capture of audit begin with 40000
		if item.To == "client" {
			m.From = codec.Server
		}
		var args []string
		for _, raw := range []json.RawMessage{item.Args, item.Repeated} {
			d := json.NewDecoder(bytes.NewReader(raw))
			d.UseNumber()
			name := ""
			for {
				tok, err := d.Token()
				if err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				switch _, mark := tok.(json.Delim); {
				case mark:
				case name == "":
					name = tok.(string)
				default:
					v := fmt.Sprint(tok)
					if f := p.TypeNamed(item.Type).FieldAt(len(args)); f.Scalar {
						v = visible([]byte(v))
					}
					args, name = append(args, name+"="+v), ""
				}
			}
		}
		m.Args = strings.Join(args, " ") + fmt.Sprintf(" in frame %d", item.Frame)
		list = append(list, m)
	}
	if leftOut > 0 {
		t.Logf("%d messages after a message whose end is unknown are left out", leftOut)
	}
	return list
}
