//go:build unix

// Command capturespeed measures how fast jobwire, and optionally tshark, decode captures: bytes of the capture
// per second of CPU time, which hardly depends on other processes, and peak memory.
//
//	capturespeed [-tshark] JOBWIRE CAPTURE...
//
// With -tshark the captures must be of Gearman.
package main

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// gearman has the options with which tshark 4.0 decodes Gearman.
var gearman = []string{"tshark", "-d", "tcp.port==4730,gearman"}

// ways are the options for showing a capture, for both programs. jobwire is run runs times, tshark once.
var ways = []struct{ jobwire, tshark []string }{
	{[]string{"summary"}, []string{"-Y", "gearman.pkt_type == 99"}}, // all packets are dissected, none is printed
	{[]string{"--annotate", "--utc"}, []string{"-V", "-O", "gearman", "-x"}},
	{[]string{"--format", "json"}, []string{"-T", "json"}},
}

const runs = 5

// main parses the arguments and measures each capture. Its exit status is 2 if arguments are missing, and 1 if a
// program fails.
func main() {
	tshark := flag.Bool("tshark", false, "run tshark too, once for each way to show a capture")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "capturespeed: want the program jobwire, and captures")
		os.Exit(2)
	}
	if err := measure(flag.Arg(0), flag.Args()[1:], *tshark); err != nil {
		fmt.Fprintln(os.Stderr, "capturespeed:", err)
		os.Exit(1)
	}
}

// measure prints a table with one line for each capture and way to show it: CPU seconds, MB of the capture per CPU
// second, and peak memory. For jobwire it prints the run with the median CPU time.
func measure(jobwire string, captures []string, tshark bool) error {
	fmt.Printf("%-14s %-34s %8s %10s %8s\n", "capture", "", "CPU s", "MB/s CPU", "MB peak")
	for _, capture := range captures {
		info, err := os.Stat(capture)
		if err != nil {
			return err
		}
		show := func(n int, program string, args ...string) error {
			costs := make([]cost, n)
			for i := range costs {
				if costs[i], err = run(program, args...); err != nil {
					return err
				}
			}
			slices.SortFunc(costs, func(a, b cost) int { return cmp.Compare(a.seconds, b.seconds) })
			c := costs[n/2] // the median
			shown := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == capture || a == "-r" })
			fmt.Printf("%-14s %-34.34s %8.2f %10.0f %8.0f\n", filepath.Base(capture),
				filepath.Base(program)+" "+strings.Join(shown, " "),
				c.seconds, float64(info.Size())/1e6/c.seconds, c.memory)
			return nil
		}
		for _, w := range ways {
			if err := show(runs, jobwire, slices.Concat([]string{"decode"}, w.jobwire, []string{capture})...); err != nil {
				return err
			}
			if tshark {
				if err := show(1, gearman[0], slices.Concat(w.tshark, []string{"-r", capture}, gearman[1:])...); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// cost is the resource usage of a program.
type cost struct {
	seconds float64 // CPU time in user and kernel mode
	memory  float64 // peak memory in MB
}

// run runs a program and discards its output.
func run(program string, args ...string) (cost, error) {
	cmd := exec.Command(program, args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil {
		return cost{}, fmt.Errorf("%s: %w: %s", cmd, err, complaints.String())
	}
	s := cmd.ProcessState
	c := cost{seconds: (s.UserTime() + s.SystemTime()).Seconds()}
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		c.memory = float64(u.Maxrss) / 1e3 // KB on Linux
	}
	return c, nil
}
