package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"jobwire/conform/mutanttest"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/pcap"
	"jobwire/play"
)

// transcribed decodes a capture into transcripts, and returns the names of their files.
func transcribed(t *testing.T, capture []byte, args ...string) []string {
	t.Helper()
	dir := t.TempDir()
	var out, complaints bytes.Buffer
	args = append([]string{"decode", "transcripts", "-", "-o", dir}, args...)
	if status := run(t.Context(), args, bytes.NewReader(capture), &out, &complaints); status != cli.StatusOK {
		t.Fatalf("exit status %d: %s", status, complaints.String())
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.wire"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// performed plays transcripts against a server, and reports an error for each that fails.
func performed(t *testing.T, files []string, args ...string) {
	t.Helper()
	for _, file := range files {
		var out, complaints bytes.Buffer
		if status := run(t.Context(), append([]string{"play", file}, args...), nil, &out, &complaints); status != cli.StatusOK {
			text, _ := os.ReadFile(file)
			t.Errorf("exit status %d: %s%s\n%s", status, out.String(), complaints.String(), text)
		}
	}
}

// embedded starts the reference server of a protocol in memory.
func embedded(t *testing.T, sys *catalog.Entry) target.Target {
	t.Helper()
	srv, err := inMemory(sys)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Stop() })
	return srv
}

// sampled is the interval of cases that TestTranscriptsOfCases runs: one of every 7, because all would take too long.
const sampled = 7

// TestTranscriptsOfCases plays cases of conform, captures the traffic, and plays the transcripts of the captures.
func TestTranscriptsOfCases(t *testing.T) {
	skipIfShort(t)
	for _, sys := range catalog.All() {
		t.Run(sys.Protocol.Name, func(t *testing.T) {
			t.Parallel()
			suite := mutanttest.Load(t, sys.Protocol)
			for i, c := range suite.First().Cases {
				if i%sampled != 0 || c.Program != "" || lengthy(c.Script) {
					continue
				}
				t.Run(c.ID, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						tp := tapped(t, embedded(t, sys).Addr())
						dial := func(ctx context.Context, _ transcript.Actor) (net.Conn, error) {
							return new(transport.Dialer).Dial(ctx, transport.Name(tp))
						}
						r := play.Peers(t.Context(), c.Script, dial, play.Options{Codec: codec.Options{Waive: sys.Lenient}})
						capture := tp.capture(t)
						if r.Failure != nil {
							t.Skipf("the case itself: %v", r.Failure)
						}
						for _, file := range transcribed(t, capture, "--protocol", sys.Protocol.Name) {
							performed(t, []string{file}, "--addr", embedded(t, sys).Addr())
						}
					})
				})
			}
		})
	}
}

// lengthy reports whether a step of a script takes more than 500 ms.
func lengthy(s *transcript.Script) bool {
	return slices.ContainsFunc(s.Steps, func(st transcript.Step) bool {
		return st.After > 500*time.Millisecond || slices.ContainsFunc(st.Choices, func(c transcript.Choice) bool { return c.For > 500*time.Millisecond })
	})
}

// benched runs the load generator with a server, and returns the transcripts of the traffic. It uses one client and one
// worker, because with more connections the order in which the server reads the messages is random, and the capture does
// not always show it.
func benched(t *testing.T, sys *catalog.Entry, addr string) []string {
	t.Helper()
	tp := tapped(t, addr)
	var out, complaints bytes.Buffer
	args := []string{"bench", "run", sys.Protocol.Name, "--addr", transport.Name(tp),
		"--count", "100", "--clients", "1", "--workers", "1"}
	if status := run(t.Context(), args, nil, &out, &complaints); status != cli.StatusOK {
		t.Fatalf("exit status %d: %s%s", status, out.String(), complaints.String())
	}
	return transcribed(t, tp.capture(t), "--protocol", sys.Protocol.Name)
}

// TestTranscriptsOfBench replays the traffic of the load generator with each reference server.
func TestTranscriptsOfBench(t *testing.T) {
	for _, sys := range catalog.All() {
		t.Run(sys.Protocol.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				files := benched(t, sys, embedded(t, sys).Addr())
				performed(t, files, "--quiet", "--addr", embedded(t, sys).Addr())
			})
		})
	}
}

// TestTranscriptsOfServers replays the traffic of the load generator with real servers, against a new instance of the
// server and against the reference server.
func TestTranscriptsOfServers(t *testing.T) {
	for protocol, server := range map[string]string{"gearman": "gearmand", "beanstalk": "beanstalkd", "gearmonkey": "redis-server"} {
		t.Run(server, func(t *testing.T) {
			sys, err := connect.EntryNamed(protocol)
			if err != nil {
				t.Fatal(err)
			}
			files := benched(t, sys, peers.Start(t, server).Addr())
			performed(t, files, "--quiet", "--addr", peers.Start(t, server).Addr())
			performed(t, files, "--quiet")
		})
	}
}

// TestTranscriptsOfClients replays the traffic of a real client and worker with a real server, against the reference
// server and against the real server.
func TestTranscriptsOfClients(t *testing.T) {
	client := peers.Need(t, "gearman")
	server := peers.Start(t, "gearmand")
	tp := tapped(t, server.Addr())
	_, port, err := net.SplitHostPort(tp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(client, "-h", "127.0.0.1", "-p", port, "-w", "-f", "tac", "-c", "3", "--", "tac")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one\ntwo\n", "\x00\x00binary", strings.Repeat("long\n", 20_000)} {
		submit := exec.CommandContext(t.Context(), client, "-h", "127.0.0.1", "-p", port, "-f", "tac")
		submit.Stdin = strings.NewReader(text)
		if out, err := submit.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	worker.Wait()
	files := transcribed(t, tp.capture(t))
	if len(files) != 1 {
		t.Fatalf("%d transcripts, of connections that worked together", len(files))
	}
	performed(t, files, "--quiet")
	performed(t, files, "--quiet", "--addr", server.Addr())
}

// TestTranscriptsSurviveEncodeAndDecode encodes transcripts without wildcards to captures and decodes these to transcripts, twice: the
// transcripts must not change.
func TestTranscriptsSurviveEncodeAndDecode(t *testing.T) {
	for protocol, conversation := range map[string]string{
		"gearman": `
Worker -> Job Server: CAN_DO reverse
Worker -> Job Server: PRE_SLEEP
Client -> Job Server: SUBMIT_JOB reverse "" "te\0st" after 10ms
Job Server -> Client: JOB_CREATED $job1
Job Server -> Worker: NOOP
Worker -> Job Server: GRAB_JOB
Job Server -> Worker: JOB_ASSIGN $job1 reverse "te\0st"
Worker -> Job Server: WORK_COMPLETE $job1 ""
Job Server -> Client: WORK_COMPLETE $job1 ""
Client -> Job Server: raw 00 "ABC" 00 00 00 10 00 00 00 00
Job Server -> Client: closes
Worker -> Job Server: closes
`,
		"danga": `
Worker -> Job Server: worker_connect resize
Application -> Job Server: job_create_req resize "" 0 1 a.png after 10ms
Job Server -> Application: job_create_res $job1
Worker -> Job Server: job_assign_req
Job Server -> Worker: job_assign_res resize a.png
Worker -> Job Server: job_complete_announce 0 done
Application -> Job Server: job_complete_req $job1 after 10ms
Job Server -> Application: job_complete_res 1 0 done
Worker -> Job Server: closes
Application -> Job Server: closes after 10ms
`,
		"beanstalk": `
Producer -> Server: use mail
Server -> Producer: USING mail
Producer -> Server: put 0 0 60 "to: all"
Server -> Producer: INSERTED $job1
Worker -> Server: watch mail
Server -> Worker: WATCHING 2
Worker -> Server: reserve
Server -> Worker: RESERVED $job1 "to: all"
Worker -> Server: delete $job1
Server -> Worker: DELETED
Worker -> Server: delete 999
Server -> Worker: NOT_FOUND
Producer -> Server: closes
Worker -> Server: closes after 10ms
`,
		"gearmonkey": `
Client -> Server: INCR_UID resize
Server -> Client: ID $job1
Client -> Server: HMSET_IDLE resize $job1 a.png
Server -> Client: simple OK
Client -> Server: LPUSH_QUEUE resize normal $job1
Server -> Client: integer 1
Worker -> Server: BRPOP_QUEUES resize 1
Server -> Worker: POPPED resize normal $job1
Client -> Server: closes
Worker -> Server: closes after 10ms
`} {
		t.Run(protocol, func(t *testing.T) {
			text := conversation
			for range 2 {
				var capture, complaints bytes.Buffer
				if status := run(t.Context(), []string{"encode", "-", "--protocol", protocol, "--pcap", "-"}, strings.NewReader(text), &capture, &complaints); status != cli.StatusOK {
					t.Fatalf("exit status %d: %s%s", status, complaints.String(), text)
				}
				files := transcribed(t, capture.Bytes())
				if len(files) != 1 {
					t.Fatalf("%d transcripts", len(files))
				}
				src, err := os.ReadFile(files[0])
				if err != nil {
					t.Fatal(err)
				}
				_, text, _ = strings.Cut(string(src), "@protocol "+protocol+"\n")
				text = strings.ReplaceAll(text, "# This message breaks rule gearman.packet.magic.\n", "")
				want := conversation
				if protocol == "beanstalk" { // Beanstalk does not distinguish producers and workers
					text = strings.NewReplacer("Client 2", "Worker", "Client", "Producer").Replace(text)
				}
				if text != want {
					t.Fatalf("%s\nwant\n%s", text, want)
				}
			}
		})
	}
}

// TestTranscriptOfCaptureWithMissingPacket decodes a capture with a missing packet: the transcript must report the missing bytes, and all
// messages after them must be comments.
func TestTranscriptOfCaptureWithMissingPacket(t *testing.T) {
	var capture []byte
	synctest.Test(t, func(t *testing.T) {
		tp := tapped(t, embedded(t, catalog.All()[0]).Addr())
		var out, complaints bytes.Buffer
		example := filepath.Join(corpusDir(t), "gearman", "example.wire")
		args := []string{"play", example, "--addr", transport.Name(tp)}
		if status := run(t.Context(), args, nil, &out, &complaints); status != cli.StatusOK {
			t.Fatalf("exit status %d: %s", status, complaints.String())
		}
		capture = tp.capture(t)
	})
	lost := withoutPacket(t, capture, "\x00RES\x00\x00\x00\x0b")
	text, err := os.ReadFile(transcribed(t, lost)[0])
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "bytes are missing in the capture\n# The messages below are comments, because they cannot be replayed.\n")
	for line := range strings.Lines(rest) {
		if line[0] != '#' {
			t.Errorf("after the loss: %q", line)
		}
	}
	if !found || !strings.Contains(string(text), "\nJob Server -> Worker: NOOP\n") {
		t.Errorf("what is before the loss, and the loss:\n%s", text)
	}
}

// withoutPacket returns a capture without the first packet whose payload begins with data.
func withoutPacket(t *testing.T, capture []byte, data string) []byte {
	t.Helper()
	file, err := pcap.NewFile("capture", bytes.NewReader(capture))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := pcap.NewPacketWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	const headers = 54 // Ethernet, IP and TCP
	found := false
	for {
		var p pcap.Packet
		if err := file.Next(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if !found && len(p.Data) > headers && bytes.HasPrefix(p.Data[headers:], []byte(data)) {
			found = true
		} else if err := w.Write(&p); err != nil {
			t.Fatal(err)
		}
	}
	if !found {
		t.Fatal("there is no such packet")
	}
	return out.Bytes()
}
