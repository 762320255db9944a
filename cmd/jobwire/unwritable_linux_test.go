package main

import (
	"bytes"
	"crypto/tls"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jobwire/catalog"
	"jobwire/cmd/internal/cli"
	"jobwire/internal/transport"
)

// onFullDisk returns a command that runs with a full disk mounted at a folder. The disk has a file keys with room for
// 100 bytes. At the end, the names of empty files are printed. The disk is in memory, and only the command sees it.
func onFullDisk(folder string, args ...string) *exec.Cmd {
	script := `mount -t tmpfs -o size=64k full "$1" || exit 99
		yes | head -c 3996 >"$1/keys"
		head -c 100k /dev/zero >"$1/file" 2>/dev/null
		folder=$1
		shift
		"$@"
		status=$?
		find "$folder" -type f -empty -printf 'empty: %p\n'
		exit $status`
	words := []string{"--map-root-user", "--mount", "sh", "-c", script, "sh", folder}
	return exec.Command("unshare", append(words, args...)...)
}

// TestFullFolder runs each command that writes files to a folder with a folder on a full disk: each has status 1,
// names the file and the reason in its last line, does not say that it has saved the file, and leaves no empty file.
func TestFullFolder(t *testing.T) {
	t.Parallel()
	if out, err := onFullDisk(t.TempDir(), "true").CombinedOutput(); err != nil {
		t.Skipf("cannot mount a disk: %v: %s", err, out)
	}
	names := inputs(t)
	faulty := "jobwire serve gearman --listen 127.0.0.1:{port} --fault 'answer GET_STATUS NO_JOB'"
	for i, tt := range []struct{ args, last string }{
		{"decode transcripts CAPTURE --output FULL/a", ""},
		{"audit gearman --transcripts FULL/a --program", "jobwire play ECHO --addr {addr}"},
		{"fuzz gearman --count 20 --parallel 1 --state FULL/a --findings DIR/a", ""},
		{"fuzz gearman --count 20 --parallel 1 --logs FULL/a --findings DIR/b", ""},
		{"fuzz gearman --count 200 --parallel 1 --minimize 1s --findings FULL/a --exec", faulty},
		{"audit stress gearman plain --timeout 300ms --transcripts FULL/a --program",
			"Client=jobwire play ECHO --addr {addr}"},
		{"export seeds gearman --output FULL/a", ""},
	} {
		if testing.Short() && i > 2 {
			break
		}
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			folder, echo := t.TempDir(), filepath.Join(t.TempDir(), "a.wire")
			script := "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n"
			if err := os.WriteFile(echo, []byte(script), 0o666); err != nil {
				t.Fatal(err)
			}
			replace := strings.NewReplacer("FULL", folder, "ECHO", echo)
			args := strings.Fields(replace.Replace(names.Replace("jobwire " + tt.args)))
			if tt.last != "" {
				args = append(args, replace.Replace(tt.last))
			}
			cmd := onFullDisk(folder, args...)
			var out, complaints bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &complaints
			cmd.Run()
			file := regexp.QuoteMeta(folder) + `/\S+`
			last := regexp.MustCompile("(?m)^jobwire: .*" + file + `: no space left on device\n\z`)
			if status := cmd.ProcessState.ExitCode(); status != cli.StatusFailed || !last.Match(complaints.Bytes()) {
				t.Errorf("expected status 1 and a last line about a file, got %d: %s", status, &complaints)
			}
			if strings.Contains(out.String(), "\nempty: ") || strings.HasPrefix(out.String(), "empty: ") {
				t.Errorf("the command leaves a file without content: %s", &out)
			}
			saved := regexp.MustCompile("saved in " + file + "|play ''|play " + file)
			if said := saved.FindString(out.String() + complaints.String()); said != "" {
				t.Errorf("the command says %q: %s%s", said, &out, &complaints)
			}
		})
	}
}

// TestKeyLogOnFullDisk runs commands during which the disk of their key log becomes full: each connects to the server,
// reports its verdict, and has status 1 and a last line about the key log.
func TestKeyLogOnFullDisk(t *testing.T) {
	t.Parallel()
	if out, err := onFullDisk(t.TempDir(), "true").CombinedOutput(); err != nil {
		t.Skipf("cannot mount a disk: %v: %s", err, out)
	}
	e, err := catalog.Named("gearman")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "a.wire")
	text := "Client -> Job Server: ECHO_REQ x\nJob Server -> Client: ECHO_RES x\n"
	if err := os.WriteFile(script, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ args, says string }{
		{"conform gearman --run gearman.echo.client --segments plain", "1 passed"},
		{"play " + script, "passed, 2 messages"},
		{"bench run gearman --count 20 --quiet", "20 jobs in"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			ln := listenOn(t, "127.0.0.1:0", nil)
			serveOn(t, e, tls.NewListener(ln, serverConfig(t, certificateFiles(t))), "")
			folder := t.TempDir()
			args := strings.Fields("jobwire " + tt.args + " --tls-insecure --tls-keylog " + folder + "/keys --addr")
			cmd := onFullDisk(folder, append(args, transport.Name(ln))...)
			var out, complaints bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &complaints
			cmd.Run()
			last := "jobwire: --tls-keylog: write " + folder + "/keys: no space left on device\n"
			status, all := cmd.ProcessState.ExitCode(), out.String()+complaints.String()
			if status != cli.StatusFailed || !strings.HasSuffix(complaints.String(), last) || !strings.Contains(all, tt.says) {
				t.Errorf("expected status 1 and the last line %q, got %d: %s%s", last, status, &out, &complaints)
			}
		})
	}
}
