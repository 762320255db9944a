package conform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"jobwire/internal/target"
)

// Command returns a program that starts the command line for each case. The program reads tasks from standard input and
// writes answers to standard output. {addr}, {host} and {port} in the command line are replaced with the address to
// which the program must connect.
func Command(line string) (Program, error) {
	words, err := target.Split(line)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(line, "{addr}") && !strings.Contains(line, "{port}") {
		return nil, fmt.Errorf("command %q: add {addr}, or {host} and {port}, at the place where the program expects the address of the server", line)
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, err
	}
	return func(ctx context.Context, addr string, tasks io.Reader, answers io.Writer) error {
		cmd, err := target.GroupCommand(ctx, words, addr)
		if err != nil {
			return err
		}
		cmd.Stdout = answers
		output := &target.Tail{}
		cmd.Stderr = output
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		target.Started(ctx, cmd.Process.Pid)
		ended := make(chan struct{})
		defer close(ended)
		target.WatchStops(ctx, cmd.Process.Pid, ended)
		copied := make(chan struct{})
		go func() {
			defer close(copied)
			io.Copy(in, tasks)
			in.Close()
		}()
		err = target.WaitGroup(cmd)
		if c, ok := tasks.(io.Closer); ok {
			c.Close()
		}
		<-copied
		if title, text := target.Excerpt(output.String()); err != nil && text != "" {
			err = fmt.Errorf("%w; %s:\n%s", err, title, text)
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		return err
	}, nil
}
