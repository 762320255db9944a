package conform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"jobwire/internal/target"
)

// lastWords is how much of what a program writes to standard error is told when it falls
// short, in bytes.
const lastWords = 2 << 10

// grace is how long a program that is told to end may take before it is ended.
const grace = time.Second

// Command returns a program that is started anew for every case: tasks come on its standard
// input, and its answers are expected on standard output. In the words of the command line
// {addr}, {host} and {port} stand for where it is to connect.
func Command(line string) (Program, error) {
	words, err := target.Split(line)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(line, "{addr}") && !strings.Contains(line, "{port}") {
		return nil, fmt.Errorf("%q does not say {addr} (or {host} and {port}), so the program cannot know where to connect", line)
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, err
	}
	return func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		args, err := target.Expand(words, addr)
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		// A driver may stand behind a shell or a launcher. What it starts ends with it.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
		cmd.WaitDelay = grace
		cmd.Stdout = answers
		said := &tail{limit: lastWords}
		cmd.Stderr = said
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		copied := make(chan struct{})
		go func() {
			defer close(copied)
			io.Copy(in, tasks)
			in.Close()
		}()
		err = cmd.Wait()
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if c, ok := tasks.(io.Closer); ok {
			c.Close()
		}
		<-copied
		if text := bytes.TrimSpace(said.buf); err != nil && len(text) > 0 {
			err = fmt.Errorf("%w: %s", err, text)
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		return err
	}, nil
}

// tail keeps the end of what is written to it.
type tail struct {
	buf   []byte
	limit int
}

func (t *tail) Write(b []byte) (int, error) {
	t.buf = append(t.buf, b...)
	t.buf = t.buf[max(0, len(t.buf)-t.limit):]
	return len(b), nil
}
