package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobwire/conform/mutanttest"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/cmd/internal/connect"
	"jobwire/codec"
	"jobwire/internal/peers"
	"jobwire/internal/target"
	"jobwire/internal/transport"
	"jobwire/refserver"
)

const testPassword = "correct-horse-battery"

// certificateFiles writes a new certificate and its key, and returns the names of the files.
func certificateFiles(t *testing.T) transport.Files {
	c := certificate(t)
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := transport.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for name, block := range map[string]*pem.Block{f.Cert: {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, f.Key: {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// serveOn serves a protocol on a listener until the end of the test. If password is not "", clients must log in.
func serveOn(t *testing.T, e *catalog.Entry, ln net.Listener, password string) {
	m := e.New()
	if password != "" {
		m.(interface{ RequireLogin(user, password string) }).RequireLogin("ann", password)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		refserver.New(m, refserver.Options{Protocol: e.Protocol, Codec: codec.Options{Waive: e.Lenient}}).Serve(ctx, ln)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// listenOn listens on an address, with TLS if config is not nil.
func listenOn(t *testing.T, addr string, config *tls.Config) net.Listener {
	t.Helper()
	ln, err := transport.Listen(addr, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// socketPath returns a path for a Unix socket, which must be short.
func socketPath(t *testing.T) string {
	dir, err := os.MkdirTemp("", "jw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func serverConfig(t *testing.T, f transport.Files) *tls.Config {
	t.Helper()
	config, err := f.Server()
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// endpoint is a server, and the flags with which commands connect to it.
type endpoint struct {
	name  string
	flags []string
}

// endpoints serves a protocol over each transport. The first one is TCP.
func endpoints(t *testing.T, e *catalog.Entry) []endpoint {
	var all []endpoint
	add := func(name, addr string, config *tls.Config, password string, flags ...string) {
		ln := listenOn(t, addr, config)
		serveOn(t, e, ln, password)
		all = append(all, endpoint{name, append([]string{"--addr", transport.Name(ln)}, flags...)})
	}
	own := certificateFiles(t)
	mutual := own
	mutual.CA = own.Cert
	add("tcp", "127.0.0.1:0", nil, "")
	add("unix", transport.Unix(socketPath(t)), nil, "")
	add("tls", "127.0.0.1:0", serverConfig(t, own), "", "--tls-ca", own.Cert)
	add("mutual-tls", transport.Unix(socketPath(t)), serverConfig(t, mutual), "", "--tls-ca", own.Cert, "--tls-server-name", "127.0.0.1", "--tls-cert", own.Cert, "--tls-key", own.Key)
	if ln, err := net.Listen("tcp", "[::1]:0"); err == nil { // some machines have no IPv6
		ln.Close()
		add("ipv6", "[::1]:0", nil, "")
	}
	if e.Login != nil {
		login := filepath.Join(t.TempDir(), "login")
		if err := os.WriteFile(login, []byte("ann\n"+testPassword+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		add("login", "127.0.0.1:0", nil, testPassword, "--login-file", login)
		add("login-tls", "127.0.0.1:0", serverConfig(t, own), testPassword, "--tls-insecure", "--login-file", login)
	}
	return all
}

// TestConnectionVerdicts runs some cases over each transport: the verdicts must be those of TCP, except that cases with resets are
// skipped on Unix sockets. Only GearMonkey has logins.
func TestConnectionVerdicts(t *testing.T) {
	t.Parallel()
	for _, e := range catalog.All() {
		if e.Protocol.Name != "gearman" && e.Login == nil {
			continue
		}
		t.Run(e.Protocol.Name, func(t *testing.T) {
			t.Parallel()
			suite := mutanttest.Load(t, e.Protocol)
			var selected []string
			for i, c := range suite.InProcess().Cases {
				if i%97 == 0 && !c.OwnServer {
					selected = append(selected, "--run", c.ID)
				}
			}
			var want map[string]string
			for _, to := range endpoints(t, e) {
				if e.Login != nil && to.name != "tcp" && !strings.HasPrefix(to.name, "login") {
					continue // as for the other protocol
				}
				args := slices.Concat([]string{"conform", e.Protocol.Name, "--format", "json", "--segments", "plain"}, to.flags, selected)
				var out, complaints bytes.Buffer
				run(t.Context(), args, nil, &out, &complaints)
				var report struct {
					Cases []struct{ Case, ID, Verdict, Note string }
				}
				if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Cases) == 0 {
					t.Fatalf("%s: %v: %s%s", to.name, err, out.String(), complaints.String())
				}
				got, undecided := map[string]string{}, 0
				for _, c := range report.Cases {
					got[c.ID] = c.Verdict
					if c.Verdict == "inconclusive" { // this machine was busy
						got[c.ID] = "passed"
						undecided++
					}
					if c.Verdict == "skipped" && strings.Contains(c.Note, "cannot reset a connection") && strings.HasPrefix(to.flags[1], "unix:") {
						got[c.ID] = want[c.ID]
					}
				}
				if undecided > len(got)/10 {
					t.Errorf("%s: %d of %d instances are inconclusive", to.name, undecided, len(got))
				}
				if want == nil {
					want = got
				}
				for id, verdict := range want {
					if got[id] != verdict || verdict != "passed" && verdict != "skipped" {
						t.Errorf("%s: %s: expected %s as over TCP, got %q: %s", to.name, id, verdict, got[id], complaints.String())
					}
				}
			}
		})
	}
}

// TestConnectionCommands tests that bench, fuzz, play and audit connect to a server over each transport, with TLS and
// with a login.
func TestConnectionCommands(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gearman", "gearmonkey"} {
		e, err := catalog.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(t.TempDir(), "conversation.wire")
		conversation := map[string]string{
			"gearman":    "Client -> Job Server: ECHO_REQ hello\nJob Server -> Client: ECHO_RES hello\n",
			"gearmonkey": "@protocol gearmonkey\n\nClient -> Server: INCR_UID $function\nServer -> Client: ID *\n",
		}
		if err := os.WriteFile(script, []byte(conversation[name]), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, to := range endpoints(t, e) {
			if name == "gearmonkey" && !strings.HasPrefix(to.name, "login") {
				continue // as for the other protocol
			}
			for command, args := range map[string][]string{
				"bench": {"bench", "run", name, "--count", "200", "--quiet"},
				"fuzz":  {"fuzz", name, "--count", "20", "--parallel", "1", "--seed", "1", "--findings", t.TempDir()},
				"play":  {"play", script},
				"audit": {"audit", name, "--listen", "127.0.0.1:0", "--duration", "10ms"},
			} {
				t.Run(strings.Join([]string{name, to.name, command}, "/"), func(t *testing.T) {
					t.Parallel()
					var out, complaints bytes.Buffer
					if status := run(t.Context(), append(args, to.flags...), nil, &out, &complaints); status != cli.StatusOK && status != cli.StatusInvalid {
						t.Errorf("exit status %d: %s%s", status, out.String(), complaints.String())
					}
				})
			}
		}
	}
}

// TestConnectionErrors checks that the errors of connections are one line that says what to do, and exit with status 3.
func TestConnectionErrors(t *testing.T) {
	gearman, err := catalog.Named("gearman")
	if err != nil {
		t.Fatal(err)
	}
	redis, err := catalog.Named("gearmonkey")
	if err != nil {
		t.Fatal(err)
	}
	own, other := certificateFiles(t), certificateFiles(t)
	mutual := own
	mutual.CA = own.Cert
	serve := func(e *catalog.Entry, config *tls.Config, password string) string {
		ln := listenOn(t, "127.0.0.1:0", config)
		serveOn(t, e, ln, password)
		return transport.Name(ln)
	}
	plain, secure, strict, locked := serve(gearman, nil, ""), serve(gearman, serverConfig(t, own), ""), serve(gearman, serverConfig(t, mutual), ""), serve(redis, nil, testPassword)
	absent := transport.Unix(socketPath(t))
	conversation := map[string]string{}
	for protocol, text := range map[string]string{
		"gearman":    "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n",
		"beanstalk":  "@protocol beanstalk\n\nClient -> Server: list-tube-used\nServer -> Client: USING default\n",
		"gearmonkey": "@protocol gearmonkey\n\nClient -> Server: INCR_UID f\nServer -> Client: ID *\n",
	} {
		conversation[protocol] = filepath.Join(t.TempDir(), protocol+".wire")
		if err := os.WriteFile(conversation[protocol], []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(connect.UserVariable, "ann")
	t.Setenv(connect.PasswordVariable, "wrong-"+testPassword)
	for i, tt := range []struct{ name, protocol, addr, flags, want string }{
		{"path", "gearman", absent, "", "check the path, and whether the server runs"},
		{"refused", "gearman", "127.0.0.1:1", "", "connection refused"},
		{"authority", "gearman", secure, "--tls", "name the certificate of the authority with --tls-ca"},
		{"other authority", "gearman", secure, "--tls-ca " + other.Cert, "name the certificate of the authority with --tls-ca"},
		{"name", "gearman", secure, "--tls-server-name example.org --tls-ca " + own.Cert, "not valid for example.org: name the host of the certificate with --tls-server-name"},
		{"no TLS", "gearman", plain, "--tls-insecure", "TLS"},
		{"no client certificate", "gearman", strict, "--tls-insecure", "check the client certificate (--tls-cert, --tls-key)"},
		{"other client certificate", "gearman", strict, fmt.Sprintf("--tls-insecure --tls-cert %s --tls-key %s", other.Cert, other.Key), "check the client certificate (--tls-cert, --tls-key)"},
		{"password", "gearmonkey", locked, "", "WRONGPASS"},
		{"without --tls", "gearman", secure, "", "it uses TLS: add --tls"},
		{"without --tls, with client certificates", "gearman", strict, "", "it uses TLS: add --tls"},
		{"another protocol", "beanstalk", plain, "", "it answers as a server of Gearman"},
	} {
		commands := []string{"audit", "conform", "fuzz", "bench run", "bench search", "audit stress", "play", "play case c"}
		if tt.flags != "" || tt.protocol == "gearmonkey" { // one command shows all errors of package transport, the others some of them
			commands = slices.Compact([]string{"audit", "play", "play case c", commands[i%len(commands)]})
		}
		for _, command := range commands {
			t.Run(tt.name+"/"+command, func(t *testing.T) {
				args := append(strings.Fields(command), tt.protocol, "--addr", tt.addr)
				if strings.HasPrefix(command, "play") {
					args[len(args)-3] = conversation[tt.protocol]
				}
				switch command {
				case "conform":
					args = append(args, "--run", tt.protocol+".*.*", "--segments", "plain")
				case "audit":
					args = append(args, "--listen", "127.0.0.1:0", "--duration", "1s")
				case "bench search":
					args = append(args, "--slo", "p99<20ms", "--quiet")
				case "bench run":
					args = append(args, "--count", "10", "--quiet")
				}
				var out, complaints bytes.Buffer
				status := run(t.Context(), append(args, strings.Fields(tt.flags)...), nil, &out, &complaints)
				found := false
				for line := range strings.Lines(complaints.String()) {
					found = found || strings.HasPrefix(line, "jobwire: ") && strings.Contains(line, tt.addr) && strings.Contains(line, tt.want)
				}
				if status != cli.StatusUnreachable || !found {
					t.Errorf("expected exit status 3 and one line about %s with %q, got %d: %s%s", tt.addr, tt.want, status, out.String(), complaints.String())
				}
			})
		}
	}
}

// TestLoginMissing tests that each command names the missing login in one line if the server requires one. A client of
// audit or a transcript of play may log in itself, so these commands print a warning instead of an error.
func TestLoginMissing(t *testing.T) {
	e, err := catalog.Named("gearmonkey")
	if err != nil {
		t.Fatal(err)
	}
	ln := listenOn(t, "127.0.0.1:0", nil)
	serveOn(t, e, ln, testPassword)
	addr := transport.Name(ln)
	dir := t.TempDir()
	without, with := filepath.Join(dir, "without.wire"), filepath.Join(dir, "with.wire")
	for name, login := range map[string]string{without: "", with: "Client -> Server: command AUTH ann " + testPassword + "\nServer -> Client: simple OK\n"} {
		text := "@protocol gearmonkey\n\n" + login + "Client -> Server: INCR_UID $function\nServer -> Client: ID *\n"
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(connect.PasswordVariable, "")
	for _, tt := range []struct {
		args   []string
		status int
	}{
		{[]string{"conform", "gearmonkey"}, cli.StatusUnreachable},
		{[]string{"bench", "run", "gearmonkey"}, cli.StatusUnreachable},
		{[]string{"fuzz", "gearmonkey"}, cli.StatusUnreachable},
		{[]string{"audit", "stress", "gearmonkey"}, cli.StatusUnreachable},
		{[]string{"audit", "gearmonkey", "--listen", "127.0.0.1:0", "--duration", "10ms"}, cli.StatusInvalid},
		{[]string{"play", without}, cli.StatusUnreachable},
		{[]string{"play", with}, cli.StatusOK},
	} {
		var out, complaints bytes.Buffer
		status := run(t.Context(), append(tt.args, "--addr", addr), nil, &out, &complaints)
		lines := 0
		for line := range strings.Lines(complaints.String()) {
			if strings.HasPrefix(line, "jobwire: ") && strings.Contains(line, addr+": the server requires a login") && strings.Contains(line, "NOAUTH") && strings.Contains(line, "set $"+connect.PasswordVariable) {
				lines++
			}
		}
		if status != tt.status || lines != 1 || strings.Contains(out.String(), "failed") {
			t.Errorf("%q: expected exit status %d and one line about the login, got %d: %s%s", tt.args, tt.status, status, out.String(), complaints.String())
		}
	}
}

// TestConnectionUsage checks the errors of flags that do not fit together.
func TestConnectionUsage(t *testing.T) {
	t.Parallel()
	own := certificateFiles(t)
	for args, want := range map[string]string{
		"conform gearman --tls":                                                        "--tls needs --addr or --exec",
		"conform gearman --addr 127.0.0.1:1 --tls-ca absent.pem":                       "absent.pem",
		"conform gearman --addr 127.0.0.1:1 --tls-ca " + own.Key:                       "expected certificates in PEM format",
		"conform gearman --addr 127.0.0.1:1 --tls-cert " + own.Cert:                    "name both",
		"conform gearman --addr unix:":                                                 "expected unix:PATH with a path",
		"conform gearman --addr ::1":                                                   "expected HOST:PORT, [IPV6]:PORT or unix:PATH",
		"conform gearman --addr 127.0.0.1:1 --login-file login":                        "--login-file: Gearman has no login",
		"conform gearmonkey --addr 127.0.0.1:1 --login-file absent":                    "--login-file: open absent",
		"conform gearman --exec 'server {port} {socket}'":                              "{socket} is used together with {port}",
		"serve gearman --listen 127.0.0.1:0 --tls-key " + own.Key:                      "--tls-cert, --tls-key: a certificate needs a key",
		"serve gearman --listen 127.0.0.1:0 --login-file login":                        "--login-file: Gearman has no login",
		"audit gearman --listen 127.0.0.1:0 --listen-client-ca " + own.Cert:            "--listen-cert, --listen-key: TLS connections need a certificate",
		"audit gearman --listen unix:/tmp/absent/socket --program 'client {port}'":     "cannot listen",
		"conform gearman --addr 127.0.0.1:1 --tls --tls-keylog " + os.DevNull + "/log": "--tls-keylog",
	} {
		words, err := target.Split(args)
		if err != nil {
			t.Fatal(err)
		}
		var out, errors bytes.Buffer
		status := run(t.Context(), words, nil, &out, &errors)
		if complaints := errors.String(); status != cli.StatusUsage && status != cli.StatusFailed || !strings.Contains(complaints, want) {
			t.Errorf("%s: expected %q, got %s", args, want, complaints)
		}
	}
}

// TestPasswordIsSecret tests that the password is in nothing that commands write.
func TestPasswordIsSecret(t *testing.T) {
	e, err := catalog.Named("gearmonkey")
	if err != nil {
		t.Fatal(err)
	}
	ln := listenOn(t, "127.0.0.1:0", nil)
	serveOn(t, e, ln, testPassword)
	dir := t.TempDir()
	script := filepath.Join(dir, "conversation.wire")
	if err := os.WriteFile(script, []byte("@protocol gearmonkey\n\nClient -> Server: INCR_UID $function\nServer -> Client: simple WRONG\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, password := range []string{testPassword, "wrong-" + testPassword} {
		t.Setenv(connect.UserVariable, "ann")
		t.Setenv(connect.PasswordVariable, password)
		for _, args := range [][]string{
			{"conform", "gearmonkey", "--run", "case:*pushed", "--segments", "plain", "-v", "--html", file("conform.html"), "--pcap", file("conform.pcapng"), "--format", "json"},
			{"play", script, "--annotate", "--full", "--pcap", file("play.pcapng")},
			{"bench", "run", "gearmonkey", "--count", "100", "--out", file("bench.json"), "--html", file("bench.html")},
			{"fuzz", "gearmonkey", "--count", "20", "--parallel", "1", "-v", "--logs", file("logs"), "--findings", file("findings"), "--state", file("state")},
			{"audit", "gearmonkey", "--listen", "127.0.0.1:0", "--duration", "10ms", "--pcap", file("audit.pcapng")},
		} {
			var out, complaints bytes.Buffer
			run(t.Context(), append(args, "--addr", transport.Name(ln)), nil, &out, &complaints)
			if strings.Contains(out.String()+complaints.String(), testPassword) {
				t.Errorf("%s prints the password: %s%s", args[0], out.String(), complaints.String())
			}
		}
	}
	written := 0
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		written++
		if bytes.Contains(b, []byte(testPassword)) {
			t.Errorf("%s contains the password", filepath.Base(path))
		}
		return err
	})
	if err != nil || written < 6 {
		t.Errorf("expected at least 6 files, got %d: %v", written, err)
	}
}

// recordingListener records the bytes of its connections.
type recordingListener struct {
	net.Listener
	wire  *wire
	conns int
}

func (l *recordingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.conns++
	return recorded{Conn: c, wire: l.wire, conn: l.conns, from: codec.Server, both: true}, nil
}

// TestKeyLog tests that the TLS connections of play, conform and bench can be decoded with the keys that they logged,
// and not without.
func TestKeyLog(t *testing.T) {
	e, err := catalog.Named("gearman")
	if err != nil {
		t.Fatal(err)
	}
	own := certificateFiles(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "conversation.wire")
	if err := os.WriteFile(script, []byte("Client -> Job Server: ECHO_REQ hello\nJob Server -> Client: ECHO_RES hello\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"play":    {"play", script},
		"conform": {"conform", "gearman", "--run", "gearman.echo.client", "--segments", "plain"},
		"bench":   {"bench", "run", "gearman", "--count", "50", "--quiet"},
	} {
		t.Run(name, func(t *testing.T) {
			var w wire
			ln := &recordingListener{Listener: listenOn(t, "127.0.0.1:0", nil), wire: &w}
			serveOn(t, e, tls.NewListener(ln, serverConfig(t, own)), "")
			keys := filepath.Join(dir, name+".keys")
			args := append(args, "--addr", transport.Name(ln), "--tls-ca", own.Cert)
			if name == "bench" {
				t.Setenv(connect.KeyLogVariable, keys)
			} else {
				args = append(args, "--tls-keylog", keys)
			}
			var out, complaints bytes.Buffer
			if status := run(t.Context(), args, nil, &out, &complaints); status != cli.StatusOK && status != cli.StatusInvalid {
				t.Fatalf("exit status %d: %s%s", status, out.String(), complaints.String())
			}
			log, err := os.ReadFile(keys)
			if err != nil {
				t.Fatal(err)
			}
			w.mu.Lock()
			packets := w.packets(t, e.Protocol.DefaultPort)
			w.mu.Unlock()
			messages, stats := decodeAll(t, packets, string(log))
			if stats.Decrypted == 0 || stats.Decrypted != stats.TLS {
				t.Errorf("expected only decrypted connections, got %+v", stats)
			}
			least := map[string]int{"play": 2, "conform": 2, "bench": 200}[name]
			if len(messages) < least {
				t.Errorf("expected at least %d messages, got %d", least, len(messages))
			}
			if none, _ := decodeAll(t, packets, ""); len(none) > 0 {
				t.Errorf("expected no message without the keys, got %d", len(none))
			}
		})
	}
}

// TestConnectionPeers tests real servers over Unix sockets, and over TLS with a login, with the verdicts of their profiles.
func TestConnectionPeers(t *testing.T) {
	t.Parallel()
	own := certificateFiles(t)
	dir := t.TempDir()
	login, users := filepath.Join(dir, "login"), filepath.Join(dir, "users.acl")
	for name, text := range map[string]string{
		login: "ann\n" + testPassword + "\n",
		users: "user default off\nuser ann on >" + testPassword + " ~* &* +@all\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		peer, protocol, profile, cases, exec string
		flags                                []string
	}{
		{"beanstalkd", "beanstalk", "beanstalkd", "beanstalk.put.*", "beanstalkd -l unix:{socket}", nil},
		{"redis-server", "gearmonkey", "redis-server", "case:*pushed", "redis-server --port 0 --tls-port {port} --bind 127.0.0.1 --tls-auth-clients no --save '' --dir " + dir + " --tls-cert-file " + own.Cert +
			" --tls-key-file " + own.Key + " --tls-ca-cert-file " + own.Cert + " --aclfile " + users, []string{"--tls-ca", own.Cert, "--login-file", login}},
		// The proxy of audit accepts TLS connections for a server without TLS.
		{"gearmand", "gearman", "gearmand", "gearman.echo.*", "jobwire audit gearman --listen 127.0.0.1:{port} --listen-cert " + own.Cert + " --listen-key " + own.Key + " --addr ", []string{"--tls-ca", own.Cert}},
	} {
		t.Run(tt.peer, func(t *testing.T) {
			t.Parallel()
			peers.Need(t, tt.peer)
			if strings.HasSuffix(tt.exec, "--addr ") {
				tt.exec += peers.Start(t, tt.peer).Addr()
			}
			args := append([]string{"conform", tt.protocol, "--profile", tt.profile, "--segments", "plain", "--run", tt.cases, "--exec", tt.exec}, tt.flags...)
			out, complaints := jobwireRun(t, cli.StatusOK, args...)
			if strings.Contains(out+complaints, testPassword) {
				t.Error("conform prints the password")
			}
		})
	}
}
