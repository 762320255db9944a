package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"jobwire/cmd/internal/cli"
	"jobwire/codec"
	"jobwire/codec/gearman"
	"jobwire/internal/peers"
	"jobwire/pcap"
)

// conversation has the bytes that each end of a connection sent, by codec.Side.
type conversation [2]string

// sent returns the bytes that passed through a relay, by connection, in no particular order.
func (tp *tap) sent() []conversation {
	all := map[int]*conversation{}
	for _, e := range tp.events {
		if all[e.Conn] == nil {
			all[e.Conn] = &conversation{}
		}
		all[e.Conn][e.From] += string(e.Data)
	}
	var list []conversation
	for _, c := range all {
		if *c != (conversation{}) {
			list = append(list, *c)
		}
	}
	return list
}

// decodedFrom decodes a capture. It returns the bytes of each connection, and the number of messages of each type by sender.
func decodedFrom(t *testing.T, file string) ([]conversation, [2]map[string]int) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f, err := pcap.NewFile(file, in)
	if err != nil {
		t.Fatal(err)
	}
	all, types := map[int]*conversation{}, [2]map[string]int{{}, {}}
	d := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
		switch it.Kind {
		case pcap.Message:
			if it.Frame.Type != nil {
				types[it.From][it.Frame.Type.Name]++
			}
		case pcap.Gap, pcap.Unread, pcap.Violates:
			t.Errorf("connection %d, %v: %d bytes missing, %q, %v", it.Conn.ID, it.From, it.Missing, it.Raw, it.Err)
		}
		if all[it.Conn.ID] == nil {
			all[it.Conn.ID] = &conversation{}
		}
		all[it.Conn.ID][it.From] += string(it.Raw)
	})
	if err := d.Decode(f); err != nil {
		t.Fatal(err)
	}
	var list []conversation
	for _, c := range all {
		list = append(list, *c)
	}
	return list, types
}

// packets counts Gearman packets by sender and type. It does not use our codec, but the header in the specification: a
// magic, a type and a size. It skips text commands.
func packets(all []conversation) (counts [2]map[uint32]int) {
	for side, magic := range [...]string{"\x00REQ", "\x00RES"} {
		counts[side] = map[uint32]int{}
		for _, c := range all {
			for s := c[side]; len(s) > 0; {
				if !strings.HasPrefix(s, magic) {
					s = s[strings.IndexByte(s, '\n')+1:]
					continue
				}
				head := []byte(s[:12])
				counts[side][binary.BigEndian.Uint32(head[4:])]++
				s = s[12+binary.BigEndian.Uint32(head[8:]):]
			}
		}
	}
	return counts
}

// program runs a program of another project until it exits, and returns its output.
func program(t *testing.T, stdin, path string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", path, err, out)
	}
	return string(out)
}

// background starts a program of another project, and returns a function that ends it.
func background(t *testing.T, path string, args ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(path, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	stop = func() {
		if !ended {
			ended = true
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	t.Cleanup(stop)
	return stop
}

// TestDecodeListsTheSentMessages captures the traffic of real clients, workers and servers through a relay that records it. The
// capture must decode to exactly the bytes that passed through the relay.
func TestDecodeListsTheSentMessages(t *testing.T) {
	echo := [2]string{"\x00REQ\x00\x00\x00\x10\x00\x00\x00\x07the end", "\x00RES\x00\x00\x00\x11\x00\x00\x00\x07the end"}
	for _, c := range []struct {
		name, server string
		needs        []string
		act          func(t *testing.T, paths []string, host, port string)
		end          [2]string
		counts       [2]map[string]int // expected number of messages of some types, by sender
	}{
		{"gearman", "gearmand", []string{"gearman"}, func(t *testing.T, paths []string, host, port string) {
			at := func(args ...string) []string { return append([]string{"-h", host, "-p", port}, args...) }
			stop := background(t, paths[0], at("-w", "-f", "tac", "--", "tac")...)
			defer stop()
			for i := range 4 {
				program(t, strings.Repeat("\x00line\n", 1+i*4000), paths[0], at("-f", "tac")...)
			}
			program(t, "", paths[0], at("-b", "-f", "later", "x")...)
		}, echo, [2]map[string]int{{"SUBMIT_JOB": 4, "SUBMIT_JOB_BG": 1, "WORK_COMPLETE": 4}, {"WORK_COMPLETE": 4, "JOB_CREATED": 5}}},

		{"perl", "gearmand", []string{"gearman-perl"}, func(t *testing.T, paths []string, host, port string) {
			addr := net.JoinHostPort(host, port)
			stop := background(t, paths[0], "-MGearman::Worker", "-e", `
				my $w = Gearman::Worker->new;
				$w->job_servers($ARGV[0]);
				$w->register_function(add => sub { my ($a, $b) = split /,/, $_[0]->arg; $_[0]->set_status(1, 2); $a + $b });
				$w->work while 1;`, addr)
			defer stop()
			out := program(t, "", paths[0], "-MGearman::Client", "-e", `
				my $c = Gearman::Client->new;
				$c->job_servers($ARGV[0]);
				print ${$c->do_task(add => "$_,4")}, " " for 1..5;
				my $s = $c->get_status($c->dispatch_background(add => '1,2'));`, addr)
			if out != "5 6 7 8 9 " {
				t.Fatalf("%q", out)
			}
		}, echo, [2]map[string]int{{"SUBMIT_JOB": 5, "SUBMIT_JOB_BG": 1, "GET_STATUS": 1}, {"STATUS_RES": 1, "JOB_CREATED": 6}}},

		{"php", "gearmand", []string{"gearman-php"}, func(t *testing.T, paths []string, host, port string) {
			stop := background(t, paths[0], "-r", `
				$w = new GearmanWorker();
				$w->addServer($argv[1], (int)$argv[2]);
				$w->addFunction('upper', function ($j) { $j->sendData('part'); return strtoupper($j->workload()); });
				while (true) @$w->work();`, host, port)
			defer stop()
			out := program(t, "", paths[0], "-r", `
				$c = new GearmanClient();
				$c->addServer($argv[1], (int)$argv[2]);
				$done = 0;
				$c->setCompleteCallback(function ($t) use (&$done) { $done++; });
				for ($i = 0; $i < 5; $i++) $c->addTask('upper', str_repeat("hello\0", 1 + 1000 * $i));
				$c->runTasks();
				echo $done;`, host, port)
			if out != "5" {
				t.Fatalf("%q", out)
			}
		}, echo, [2]map[string]int{{"SUBMIT_JOB": 5, "WORK_DATA": 5}, {"WORK_DATA": 5, "WORK_COMPLETE": 5}}},

		{"beaneater", "beanstalkd", []string{"beaneater"}, func(t *testing.T, paths []string, host, port string) {
			out := program(t, "", paths[0], "-rbeaneater", "-e", `
				b = Beaneater.new(ARGV[0])
				tube = b.tubes["work"]
				tube.put("one\r\n\0two", pri: 5, ttr: 60)
				tube.put("x" * 30000, pri: 1)
				b.tubes.watch!("work")
				job = b.tubes.reserve(0)
				job.touch
				job.release(pri: 9)
				job = b.tubes.reserve
				job.bury
				tube.kick(10)
				puts job.stats.state
				2.times { b.tubes.reserve(0).delete }
				b.stats
				b.close`, net.JoinHostPort(host, port))
			if out != "ready\n" {
				t.Fatalf("%q", out)
			}
		}, [2]string{"use the-end\r\n", "USING the-end\r\n"},
			[2]map[string]int{{"put": 2, "reserve": 1, "reserve-with-timeout": 3, "delete": 2}, {"RESERVED": 4, "DELETED": 2, "INSERTED": 2}}},

		{"redis-cli", "redis-server", []string{"redis-cli"}, func(t *testing.T, paths []string, host, port string) {
			out := program(t, `INCR uid:reverse
HMSET job:reverse:1 status idle input "one \r\n two\x00"
LPUSH queue:reverse:normal 1
BRPOP queue:reverse:high queue:reverse:normal 0
HGETALL job:reverse:1
`, paths[0], "-h", host, "-p", port)
			if !strings.HasPrefix(out, "1\nOK\n1\nqueue:reverse:normal\n1\n") {
				t.Fatalf("%q", out)
			}
		}, [2]string{bulkOf("ECHO", "the-end"), "$7\r\nthe-end\r\n"},
			[2]map[string]int{{"INCR_UID": 1, "HMSET_IDLE": 1}, nil}},
	} {
		for _, device := range []string{"lo", "any"} {
			t.Run(c.name+"/"+device, func(t *testing.T) {
				var paths []string
				for _, p := range c.needs {
					paths = append(paths, peers.Need(t, p))
				}
				relay := tapped(t, peers.Start(t, c.server).Addr())
				defer relay.Close()
				host, port, err := net.SplitHostPort(relay.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				file := capture(t, port, func() { c.act(t, paths, host, port) }, c.end[0], c.end[1], "-i", device)
				relay.Close()
				relay.pumps.Wait()
				got, types := decodedFrom(t, file)
				// The capture need not contain all connections that send the end mark.
				marks := func(s conversation) bool { return s[0] == c.end[0] }
				want := slices.DeleteFunc(relay.sent(), marks)
				got = slices.DeleteFunc(got, marks)
				order := func(a, b conversation) int { return strings.Compare(a[0]+"\n"+a[1], b[0]+"\n"+b[1]) }
				slices.SortFunc(want, order)
				slices.SortFunc(got, order)
				if len(want) < 1 || !slices.Equal(got, want) {
					t.Errorf("%d conversations are decoded, %d were held:\n%.3000q\nwant\n%.3000q", len(got), len(want), got, want)
				}
				for side := range c.counts {
					for name, n := range c.counts[side] {
						if types[side][name] != n {
							t.Errorf("%v: %d %s, want %d: %v", codec.Side(side), types[side][name], name, n, types[side])
						}
					}
				}
				if c.server == "gearmand" {
					for side, counts := range packets(want) {
						for _, msgType := range gearman.Protocol.Types {
							if msgType.Code > 0 && !strings.HasPrefix(msgType.Name, "ECHO_") && counts[msgType.Code] != types[side][msgType.Name] {
								t.Errorf("%v: %d %s, %d were sent", codec.Side(side), types[side][msgType.Name], msgType.Name, counts[msgType.Code])
							}
						}
					}
				}
			})
		}
	}
}

// bulkOf encodes a command as Redis clients do: as an array of bulk strings.
func bulkOf(words ...string) string {
	b := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		b += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// TestDecodesWhatTsharkDecodesIncorrectly decodes captures that tshark 4.0 decodes incorrectly and jobwire decodes correctly: a header that
// is split across segments, a NUL in a workload, the handle of a GET_STATUS, and Beanstalk.
func TestDecodesWhatTsharkDecodesIncorrectly(t *testing.T) {
	tshark := peers.Need(t, "tshark")
	if v := program(t, "", tshark, "--version"); !strings.Contains(v, "TShark (Wireshark) 4.0.") {
		t.Skipf("tshark is not the one that is described: %.40s", v)
	}
	const request, reply = "\x00REQ\x00\x00\x00\x10\x00\x00\x00\x02hi", "\x00RES\x00\x00\x00\x11\x00\x00\x00\x02hi"
	nul := "\x00RES\x00\x00\x00\x0d\x00\x00\x00\x0dH:lap:1\x00ab\x00cd"
	status := "\x00REQ\x00\x00\x00\x0f\x00\x00\x00\x07H:lap:1"
	for _, c := range []struct {
		name   string
		port   int
		sent   [][2]string // by the peer and by the server
		filter string      // display filter of tshark: the protocol
		field  string      // field that tshark prints
		tshark string      // output of tshark
		ours   []string    // parts of the output of jobwire decode
	}{
		{"a split header", 4730, [][2]string{{request[:3], ""}, {request[3:], ""}, {"", reply}}, "gearman", "gearman.pkt_type", "\n\n17\n",
			[]string{`"type":"ECHO_REQ"`, `"type":"ECHO_RES"`}},
		{"NUL in a workload", 4730, [][2]string{{request, nul}}, "gearman", "gearman.func.result", "\nab\n", []string{`"Response":"ab\u0000cd"`}},
		{"a handle of GET_STATUS", 4730, [][2]string{{status, ""}}, "gearman", "gearman.job.handle", "\n", []string{`"type":"GET_STATUS"`, `"Job handle":"H:lap:1"`}},
		{"Beanstalk", 11300, [][2]string{{"use x\r\n", "USING x\r\n"}}, "beanstalk", "_ws.col.Protocol", "", []string{`"protocol":"beanstalk"`, `"type":"use"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			w, err := pcap.NewWriter(&b, c.port)
			if err != nil {
				t.Fatal(err)
			}
			for _, pair := range c.sent {
				for side, data := range pair {
					if data == "" {
						continue
					}
					if err := w.Write(pcap.Event{From: codec.Side(side), Kind: pcap.Data, Data: []byte(data)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			file := t.TempDir() + "/x.pcap"
			if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), tshark, "-r", file, "-Y", c.filter, "-T", "fields", "-e", c.field).Output()
			if string(out) != c.tshark || (err == nil) != (c.filter == "gearman") {
				t.Errorf("tshark says %q, %v", out, err)
			}
			var ours, complaints bytes.Buffer
			if s := run(t.Context(), []string{"decode", file, "--format", "json"}, nil, &ours, &complaints); s != cli.StatusOK {
				t.Fatalf("exit status %d: %s", s, complaints.String())
			}
			for _, want := range c.ours {
				if !strings.Contains(ours.String(), want) {
					t.Errorf("no %s in\n%s", want, ours.String())
				}
			}
		})
	}
}
