package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobwire/cmd/internal/cli"
	"jobwire/codec"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/pcap"
	"jobwire/pcap/decrypt"
)

// The conversations that TLS connections carry, as transcripts.
var tlsConversations = map[string]string{
	"gearman": "", // the example of the corpus
	"beanstalk": `@protocol beanstalk

Producer -> Server: use mail
Server -> Producer: USING mail
Producer -> Server: put 0 0 60 hello
Server -> Producer: INSERTED 1
Worker -> Server: watch mail
Server -> Worker: WATCHING 2
Worker -> Server: reserve
Server -> Worker: RESERVED 1 hello
Worker -> Server: delete 1
Server -> Worker: DELETED
`,
}

// jobwireRun runs a command and returns its output.
func jobwireRun(t *testing.T, want int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, complaints bytes.Buffer
	if status := run(context.Background(), args, nil, &out, &complaints); status != want {
		t.Fatalf("jobwire %s: expected exit status %d, got %d: %s", strings.Join(args, " "), want, status, complaints.String())
	}
	return out.String(), complaints.String()
}

// plainCapture writes a capture of a conversation without TLS.
func plainCapture(t *testing.T, protocol string) string {
	dir := t.TempDir()
	script, file := filepath.Join(corpusDir(t), protocol, "example.wire"), filepath.Join(dir, "plain.pcapng")
	if text := tlsConversations[protocol]; text != "" {
		script = filepath.Join(dir, "plain.wire")
		if err := os.WriteFile(script, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	jobwireRun(t, cli.StatusOK, "encode", script, "--pcap", file)
	return file
}

// sent is a message of a capture.
type sent struct {
	conn int // port of the client
	from codec.Side
	raw  string
}

// decodeAll returns the messages that a decoder finds in packets, and its counts.
func decodeAll(t *testing.T, packets []pcap.Packet, keys string) ([]sent, pcap.Stats) {
	var all []sent
	var o pcap.Options
	if keys != "" {
		k, err := decrypt.NewKeys(strings.NewReader(keys))
		if err != nil {
			t.Fatal(err)
		}
		o.Keys = k
	}
	d := pcap.NewDecoder(o, func(it *pcap.Item) {
		if it.Kind <= pcap.Violates {
			all = append(all, sent{int(it.Conn.Peer.Port()), it.From, string(it.Raw)})
		}
	})
	for i := range packets {
		p := packets[i]
		p.Number = i + 1
		d.Packet(&p)
	}
	d.Close()
	return all, d.Stats()
}

// packetsOf reads a capture.
func packetsOf(t *testing.T, r io.Reader) []pcap.Packet {
	f, err := pcap.NewFile("test", r)
	if err != nil {
		t.Fatal(err)
	}
	var all []pcap.Packet
	for {
		var p pcap.Packet
		if err := f.Next(&p); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		p.Data = bytes.Clone(p.Data)
		all = append(all, p)
	}
}

// certificate returns a new certificate for loopback servers.
func certificate(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// wire records what is sent on connections, as the events of a capture.
type wire struct {
	mu     sync.Mutex
	events []pcap.Event
}

func (w *wire) add(conn int, from codec.Side, b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, pcap.Event{Conn: conn, From: from, Kind: pcap.Data, Data: bytes.Clone(b)})
}

// recorded is an end of a connection whose sent data is recorded and, if both is set, its received data.
type recorded struct {
	net.Conn
	wire *wire
	conn int
	from codec.Side
	both bool
}

func (r recorded) Write(b []byte) (int, error) {
	r.wire.add(r.conn, r.from, b)
	return r.Conn.Write(b)
}

func (r recorded) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	if r.both && n > 0 {
		r.wire.add(r.conn, r.from.Other(), b[:n])
	}
	return n, err
}

// packets returns the capture of the events with a server at the given port.
func (w *wire) packets(t *testing.T, port int) []pcap.Packet {
	var b bytes.Buffer
	out, err := pcap.NewWriter(&b, port)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range w.events {
		if err := out.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return packetsOf(t, &b)
}

// overTLS sends messages over TLS connections, and returns the captured packets and the key log.
func overTLS(t *testing.T, messages []sent, o *tls.Config) (packets []pcap.Packet, keys string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var w wire
	var log bytes.Buffer
	o = o.Clone()
	o.Certificates, o.InsecureSkipVerify, o.KeyLogWriter = []tls.Certificate{certificate(t)}, true, &log
	serving := o.Clone()
	serving.KeyLogWriter, o.CurvePreferences = nil, nil
	conns := map[int][2]*tls.Conn{}
	for _, m := range messages {
		ends, ok := conns[m.conn]
		if !ok {
			client, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			server, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			defer server.Close()
			ends = [2]*tls.Conn{codec.Peer: tls.Client(recorded{Conn: client, wire: &w, conn: m.conn, from: codec.Peer}, o),
				codec.Server: tls.Server(recorded{Conn: server, wire: &w, conn: m.conn, from: codec.Server}, serving)}
			failed := make(chan error)
			for _, e := range ends {
				e.SetDeadline(time.Now().Add(time.Minute))
				go func() { failed <- e.Handshake() }()
			}
			if err := cmp.Or(<-failed, <-failed); err != nil {
				t.Fatal(err)
			}
			conns[m.conn] = ends
		}
		go io.WriteString(ends[m.from], m.raw)
		if _, err := io.ReadFull(ends[m.from.Other()], make([]byte, len(m.raw))); err != nil {
			t.Fatal(err)
		}
	}
	return w.packets(t, 4730), log.String()
}

// subsequence reports whether got has only messages of want, in their order on each connection and direction.
func subsequence(got, want []sent) bool {
	next := map[sent]int{}
	for _, g := range got {
		key := sent{conn: g.conn, from: g.from}
		i := next[key]
		for i < len(want) && want[i] != g {
			i++
		}
		if i == len(want) {
			return false
		}
		next[key] = i + 1
	}
	return true
}

// tlsConfigs are the configurations of both ends. CurvePreferences are only those of the server.
var tlsConfigs = map[string]*tls.Config{
	"1.3":              {MinVersion: tls.VersionTLS13},
	"1.3 resumed":      {MinVersion: tls.VersionTLS13, ClientSessionCache: tls.NewLRUClientSessionCache(1)},
	"1.3 second hello": {MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.CurveP521}},
	"1.2 AES-128":      {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}},
	"1.2 AES-256":      {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}},
	"1.2 ChaCha":       {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}},
}

// TestDecodeTLS decodes TLS connections of all supported ciphers: the messages must be those of the same conversation without
// TLS, also if packets are duplicated or in another order. If packets are missing, or keys are missing or wrong, decode must
// list no message that was not sent.
func TestDecodeTLS(t *testing.T) {
	t.Parallel()
	for protocol := range tlsConversations {
		want, _ := decodeAll(t, packetsOf(t, open(t, plainCapture(t, protocol))), "")
		if len(want) < 8 {
			t.Fatalf("expected at least 8 messages, got %v", want)
		}
		// A message of several records, and of several segments.
		big := sent{want[0].conn, codec.Peer, "\x00REQ\x00\x00\x00\x10\x00\x00\x9c\x40" + strings.Repeat("\x00REQ\x00\x00\x00\x0f\x00\x00\x00\x00", 40000)[:40000]}
		if protocol == "gearman" {
			want = append(want, big, sent{big.conn, codec.Server, "\x00RES" + big.raw[4:7] + "\x11" + big.raw[8:]})
		}
		for name, config := range tlsConfigs {
			t.Run(protocol+" "+name, func(t *testing.T) {
				t.Parallel()
				packets, keys := overTLS(t, want, config)
				equal := func(what string, packets []pcap.Packet) {
					t.Helper()
					got, st := decodeAll(t, packets, keys)
					if !slices.Equal(got, want) || st.TLS != st.Connections || st.Decrypted != st.TLS || st.Gaps != 0 {
						t.Errorf("%s: expected %d messages, got %d; %+v", what, len(want), len(got), st)
					}
				}
				equal("all packets", packets)
				twice := slices.Concat(packets[:len(packets)/2], packets[4:])
				equal("packets sent twice", twice)
				equal("no TCP handshake", packets[3:])
				swapped := slices.Clone(packets)
				for i := 8; i+1 < len(swapped); i += 3 {
					swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
				}
				if got, st := decodeAll(t, swapped, keys); len(got) != len(want) || !subsequence(got, want) {
					t.Errorf("packets in another order: expected %d messages, got %d; %+v", len(want), len(got), st)
				}

				few := func(what string, packets []pcap.Packet, keys string) pcap.Stats {
					t.Helper()
					got, st := decodeAll(t, packets, keys)
					if !subsequence(got, want) {
						t.Errorf("%s: messages that were not sent: %v", what, got)
					}
					return st
				}
				step := 1
				if len(packets) > 100 {
					step = 3
				}
				for i := 0; i < len(packets); i += step {
					few(fmt.Sprintf("without packet %d", i+1), slices.Concat(packets[:i], packets[i+1:]), keys)
					few(fmt.Sprintf("from packet %d on", i+1), packets[i:], keys)
					damaged := slices.Clone(packets)
					damaged[i].Data = bytes.Clone(damaged[i].Data)
					damaged[i].Data[len(damaged[i].Data)-1] ^= 1
					few(fmt.Sprintf("packet %d damaged", i+1), damaged, keys)
				}
				wrong := regexp.MustCompile(`[0-9a-f]{8}\n`).ReplaceAllString(keys, "00000000\n")
				other := regexp.MustCompile(` [0-9a-f]{8}`).ReplaceAllString(keys, " 00000000")
				for what, keys := range map[string]string{"wrong keys": wrong, "keys of other connections": other, "no keys": ""} {
					if got, st := decodeAll(t, packets, keys); len(got) != 0 || st.Decrypted != 0 || st.TLS != st.Connections {
						t.Errorf("%s: expected only TLS connections, got %d messages, %+v", what, len(got), st)
					}
				}
			})
		}
	}
}

// TestDecodeTLSUnsupported decodes connections that decode cannot decrypt: the summary has the reason.
func TestDecodeTLSUnsupported(t *testing.T) {
	t.Parallel()
	messages := []sent{{1, codec.Peer, "use a\r\n"}, {1, codec.Server, "USING a\r\n"}}
	for want, config := range map[string]*tls.Config{
		"the cipher suite TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA is not supported": {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}},
		"TLS 1.1 is not supported": {MinVersion: tls.VersionTLS11, MaxVersion: tls.VersionTLS11},
	} {
		packets, keys := overTLS(t, messages, config)
		if got, st := decodeAll(t, packets, keys); len(got) > 0 || st.Undecrypted[want] != 1 {
			t.Errorf("expected %q, got %d messages, %v", want, len(got), st.Undecrypted)
		}
	}
}

// TestDecodeTLSLateKeys tests that a live capture is decrypted completely although the keys of a connection are logged
// after its handshake was captured, and in two parts.
func TestDecodeTLSLateKeys(t *testing.T) {
	t.Parallel()
	want := []sent{{40000, codec.Peer, "use a\r\n"}, {40000, codec.Server, "USING a\r\n"}}
	packets, keys := overTLS(t, want, &tls.Config{})
	for _, cut := range []int{len(keys) / 2, len(keys) - 10} { // within a line
		var log bytes.Buffer
		k, err := decrypt.NewKeys(&log)
		if err != nil {
			t.Fatal(err)
		}
		var got []sent
		d := pcap.NewDecoder(pcap.Options{Keys: k}, func(it *pcap.Item) {
			if it.Kind <= pcap.Violates {
				got = append(got, sent{int(it.Conn.Peer.Port()), it.From, string(it.Raw)})
			}
		})
		for i := range packets {
			switch i {
			case len(packets) / 2:
				log.WriteString(keys[:cut])
			case len(packets) - 5:
				log.WriteString(keys[cut:])
			}
			d.Packet(&packets[i])
		}
		d.Close()
		if !slices.Equal(got, want) {
			t.Errorf("expected %v, got %v; %+v", want, got, d.Stats())
		}
	}
}

// TestDecodeTLSKeyUpdate tests that a TLS connection is still decrypted after both sides have updated their keys. The
// client openssl starts the updates.
func TestDecodeTLSKeyUpdate(t *testing.T) {
	t.Parallel()
	openssl := peers.Need(t, "openssl")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	log := filepath.Join(t.TempDir(), "keys.log")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := exec.CommandContext(ctx, openssl, "s_client", "-connect", l.Addr().String(), "-tls1_3", "-crlf", "-keylogfile", log)
	in, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	reports := bufio.NewScanner(startWithErrors(t, client))
	defer client.Wait()
	defer in.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var w wire
	server := tls.Server(recorded{Conn: conn, wire: &w, conn: 1, from: codec.Server, both: true}, &tls.Config{Certificates: []tls.Certificate{certificate(t)}})
	defer server.Close()
	server.SetDeadline(time.Now().Add(time.Minute))
	var want []sent
	for i := range 3 {
		ask, answer := fmt.Sprintf("use tube%d\r\n", i), fmt.Sprintf("USING tube%d\r\n", i)
		io.WriteString(in, strings.TrimSuffix(ask, "\r\n")+"\n")
		got := make([]byte, len(ask))
		if _, err := io.ReadFull(server, got); err != nil || string(got) != ask {
			t.Fatalf("expected %q, got %q, %v", ask, got, err)
		}
		if _, err := io.WriteString(server, answer); err != nil {
			t.Fatal(err)
		}
		want = append(want, sent{40000, codec.Peer, ask}, sent{40000, codec.Server, answer})
		// The command K updates the keys of both ends. s_client reports it, and expects no other input before.
		io.WriteString(in, "K\n")
		for updated := false; !updated; updated = strings.Contains(reports.Text(), "KEYUPDATE") {
			if !reports.Scan() {
				t.Fatalf("s_client ended: %v", reports.Err())
			}
		}
	}
	keys, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got, st := decodeAll(t, w.packets(t, 11300), string(keys)); !slices.Equal(got, want) {
		t.Errorf("expected %v, got %v; %+v", want, got, st)
	}
}

// open opens a file until the end of the test.
func open(t *testing.T, name string) io.Reader {
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// writePackets writes packets to a file.
func writePackets(t *testing.T, name string, packets []pcap.Packet) {
	var b bytes.Buffer
	w, err := pcap.NewPacketWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range packets {
		if err := w.Write(&packets[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(name, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// messageLines returns the messages in the output of decode.
func messageLines(out string) []string {
	var all []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, " -> ") && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}

// TestDecodeTLSKeys tests that decode and its subcommands use the keys of the flag --tls-keys or of the capture, and
// say that connections are encrypted if there are none.
func TestDecodeTLSKeys(t *testing.T) {
	t.Parallel()
	plain := plainCapture(t, "gearman")
	messages, _ := decodeAll(t, packetsOf(t, open(t, plain)), "")
	packets, keys := overTLS(t, messages, &tls.Config{})
	dir := t.TempDir()
	file, log, embedded := filepath.Join(dir, "tls.pcapng"), filepath.Join(dir, "keys.log"), filepath.Join(dir, "embedded.pcapng")
	writePackets(t, file, packets)
	if err := os.WriteFile(log, []byte(keys), 0o666); err != nil {
		t.Fatal(err)
	}
	packets[0].Secrets = []byte(keys)
	writePackets(t, embedded, packets)

	want, _ := jobwireRun(t, cli.StatusOK, "decode", plain)
	for _, args := range [][]string{{file, "--tls-keys", log}, {embedded}, {file, "--tls-keys", log, "--protocol", "gearman"}, {embedded, "--protocol", "gearman", "--port", "4730"}} {
		if got, _ := jobwireRun(t, cli.StatusOK, append([]string{"decode"}, args...)...); !slices.Equal(messageLines(got), messageLines(want)) {
			t.Errorf("%v: expected\n%s\ngot\n%s", args, want, got)
		}
	}
	for want, args := range map[string][]string{
		"2  TLS connections decrypted": {"summary", embedded},
		`"tls_decrypted": 2`:           {"summary", embedded, "--format", "json"},
		"2  TLS connections not decrypted: the keys are unknown; --tls-keys": {"summary", file},
		"1 submitted, 1 assigned, 0 redelivered, 1 completed":                {"jobs", embedded},
		"SUBMIT_JOB reverse":                      {embedded, "--job", "H:lap:1"},
		`"type":"JOB_CREATED"`:                    {embedded, "--format", "json", "--filter", "handle=H:lap:1"},
		"gearman-1.wire: 2 connections, 13 steps": {"transcripts", embedded, "-o", filepath.Join(dir, "talks")},
		"is encrypted (TLS)":                      {file},
	} {
		if out, _ := jobwireRun(t, cli.StatusOK, append([]string{"decode"}, args...)...); !strings.Contains(out, want) {
			t.Errorf("%v: expected %q, got\n%s", args, want, out)
		}
	}

	page := filepath.Join(dir, "page.html")
	jobwireRun(t, cli.StatusOK, "decode", "summary", embedded, "--html", page)
	if b, err := os.ReadFile(page); err != nil || !bytes.Contains(b, []byte("<h2>Job timelines")) {
		t.Errorf("expected job timelines in the HTML report, error %v", err)
	}

	// An excerpt contains the keys of its connections if the capture contains them.
	part := filepath.Join(dir, "part.pcapng")
	only := []string{"--filter", "type=SUBMIT_JOB"}
	jobwireRun(t, cli.StatusOK, "decode", "packets", embedded, "--filter", "type=SUBMIT_JOB", "-o", part)
	want, _ = jobwireRun(t, cli.StatusOK, append([]string{"decode", embedded}, only...)...)
	if got, _ := jobwireRun(t, cli.StatusOK, append([]string{"decode", part}, only...)...); len(messageLines(got)) != 1 || len(messageLines(got)) != len(messageLines(want)) {
		t.Errorf("excerpt: expected\n%s\ngot\n%s", want, got)
	}
	if b, err := os.ReadFile(part); err != nil || bytes.Count(b, []byte("CLIENT_TRAFFIC_SECRET_0 ")) != 1 {
		t.Errorf("expected the keys of one connection in the excerpt, error %v", err)
	}
	jobwireRun(t, cli.StatusOK, "decode", "packets", file, "--tls-keys", log, "--filter", "type=SUBMIT_JOB", "-o", part)
	if b, err := os.ReadFile(part); err != nil || bytes.Contains(b, []byte("TRAFFIC_SECRET")) {
		t.Errorf("expected no keys of --tls-keys in the excerpt, error %v", err)
	}
}

// TestDecodeTLSRedis captures commands to a real Redis server with each cipher of TLS 1.3 and 1.2, and compares the
// decrypted data with that of tshark. editcap embeds the keys.
func TestDecodeTLSRedis(t *testing.T) {
	t.Parallel()
	tshark, editcap := peers.Need(t, "tshark"), peers.Need(t, "editcap")
	dir := t.TempDir()
	cert := certificate(t)
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ version, ciphers, list string }{
		{"TLSv1.3", "tls-ciphersuites", "TLS_AES_128_GCM_SHA256"}, {"TLSv1.3", "tls-ciphersuites", "TLS_AES_256_GCM_SHA384"},
		{"TLSv1.3", "tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"}, {"TLSv1.2", "tls-ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384"},
	} {
		t.Run(c.version+" "+c.list, func(t *testing.T) {
			server := peers.Start(t, "redis-server", "--port", "0", "--tls-port", "{port}", "--tls-auth-clients", "no", "--tls-protocols", c.version, "--"+c.ciphers, c.list,
				"--tls-cert-file", filepath.Join(dir, "cert.pem"), "--tls-key-file", filepath.Join(dir, "key.pem"))
			conn, err := target.Dial(t.Context(), server)
			if err != nil {
				t.Fatal(err)
			}
			var w wire
			var keys bytes.Buffer
			client := tls.Client(recorded{Conn: conn, wire: &w, conn: 1, from: codec.Peer, both: true}, &tls.Config{InsecureSkipVerify: true, KeyLogWriter: &keys})
			defer client.Close()
			client.SetDeadline(time.Now().Add(time.Minute))
			var said, replied string
			for _, m := range []struct{ ask, answer string }{
				{"*3\r\n$5\r\nLPUSH\r\n$4\r\njobs\r\n$3\r\none\r\n", ":1\r\n"}, {"*1\r\n$4\r\nPING\r\n", "+PONG\r\n"},
				{"*2\r\n$4\r\nRPOP\r\n$4\r\njobs\r\n", "$3\r\none\r\n"},
			} {
				if _, err := io.WriteString(client, m.ask); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(m.answer))
				if _, err := io.ReadFull(client, got); err != nil || string(got) != m.answer {
					t.Fatalf("expected %q, got %q, %v", m.answer, got, err)
				}
				said, replied = said+m.ask, replied+m.answer
			}
			client.CloseWrite()
			packets := w.packets(t, 6379)
			dir := t.TempDir()
			file, log, embedded := filepath.Join(dir, "tls.pcapng"), filepath.Join(dir, "keys.log"), filepath.Join(dir, "embedded.pcapng")
			writePackets(t, file, packets)
			if err := os.WriteFile(log, keys.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), editcap, "--inject-secrets", "tls,"+log, file, embedded).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var ours [2]string
			for _, m := range decodeFile(t, embedded) {
				ours[m.from] += m.raw
			}
			if ours != [2]string{codec.Peer: said, codec.Server: replied} {
				t.Errorf("expected %q and %q, got %q", said, replied, ours)
			}
			out, err := exec.CommandContext(t.Context(), tshark, "-r", embedded, "-d", "tcp.port==6379,tls", "-q", "-z", "follow,tls,raw,0").Output()
			if err != nil {
				t.Fatal(err)
			}
			var theirs [2]string
			data := regexp.MustCompile(`(?m)^(\t?)((?:[0-9a-f]{2})+)$`).FindAllStringSubmatch(string(out), -1)
			for _, line := range data { // the lines of one of the ends begin with a tab
				side := codec.Server
				if line[1] == data[0][1] {
					side = codec.Peer
				}
				b, err := hex.DecodeString(line[2])
				if err != nil {
					t.Fatal(err)
				}
				theirs[side] += string(b)
			}
			if theirs != ours {
				t.Errorf("tshark decrypts %q, jobwire %q\n%s", theirs, ours, out)
			}
		})
	}
}

// decodeFile returns the messages of a capture, with the keys that are in it.
func decodeFile(t *testing.T, name string) []sent {
	var all []sent
	f, err := pcap.NewFile(name, open(t, name))
	if err != nil {
		t.Fatal(err)
	}
	d := pcap.NewDecoder(pcap.Options{}, func(it *pcap.Item) {
		if it.Kind <= pcap.Violates {
			all = append(all, sent{int(it.Conn.Peer.Port()), it.From, string(it.Raw)})
		}
	})
	if err := d.Decode(f); err != nil {
		t.Fatal(err)
	}
	return all
}
