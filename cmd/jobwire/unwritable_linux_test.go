package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFullFolder runs each command that writes files to a folder with a folder on a full disk: each has status 1,
// names the file and the reason in its last line, and does not say that it has saved the file. The disk is in memory,
// and only the command sees it.
func TestFullFolder(t *testing.T) {
	t.Parallel()
	mount := func(folder string, args ...string) *exec.Cmd {
		script := `mount -t tmpfs -o size=64k full "$1" || exit 99
			head -c 100k /dev/zero >"$1/file" 2>/dev/null
			shift
			exec "$@"`
		words := []string{"--map-root-user", "--mount", "sh", "-c", script, "sh", folder}
		return exec.Command("unshare", append(words, args...)...)
	}
	if out, err := mount(t.TempDir(), "true").CombinedOutput(); err != nil {
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
		{"audit stress gearman plain --timeout 300ms --transcripts FULL/a --exec",
			strings.Replace(faulty, "answer GET_STATUS NO_JOB", "drop JOB_CREATED", 1)},
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
			cmd := mount(folder, args...)
			var out, complaints bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &complaints
			cmd.Run()
			file := regexp.QuoteMeta(folder) + `/\S+`
			last := regexp.MustCompile("(?m)^jobwire: .*" + file + `: no space left on device\n\z`)
			if status := cmd.ProcessState.ExitCode(); status != exitFailed || !last.Match(complaints.Bytes()) {
				t.Errorf("expected status 1 and a last line about a file, got %d: %s", status, &complaints)
			}
			saved := regexp.MustCompile("saved in " + file + "|play ''|play " + file)
			if said := saved.FindString(out.String() + complaints.String()); said != "" {
				t.Errorf("the command says %q: %s%s", said, &out, &complaints)
			}
		})
	}
}
