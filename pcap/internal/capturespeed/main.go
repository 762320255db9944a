//go:build unix

// Command capturespeed measures how fast jobwire, and optionally tshark, decode captures: bytes of the capture
// per second of CPU time, which hardly depends on other processes, and peak memory.
//
//	capturespeed [-tshark] JOBWIRE CAPTURE...
//
// With -tshark the captures must be of Gearman, and both programs must count the same messages.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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

func main() {
	tshark := flag.Bool("tshark", false, "run tshark too, once for each way to show a capture, and compare counts")
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
				if costs[i], err = run(exec.Command(program, args...), nil); err != nil {
					return err
				}
			}
			slices.SortFunc(costs, func(a, b cost) int { return int((a.seconds - b.seconds) * 1e6) })
			c := costs[n/2] // the median
			shown := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == capture || a == "-r" })
			fmt.Printf("%-14s %-34.34s %8.2f %10.0f %8.0f\n", filepath.Base(capture), filepath.Base(program)+" "+strings.Join(shown, " "),
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
		if tshark {
			if err := compare(jobwire, capture); err != nil {
				return err
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

// run runs a program. read receives its output; if read is nil, the output is discarded.
func run(cmd *exec.Cmd, read func(io.Reader) error) (cost, error) {
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if read != nil {
		out, err := cmd.StdoutPipe()
		if err != nil {
			return cost{}, err
		}
		if err := cmd.Start(); err != nil {
			return cost{}, err
		}
		if err := read(out); err != nil {
			return cost{}, err
		}
		return cost{}, cmd.Wait()
	}
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

// compare counts messages by direction and type with both programs, and returns an error if the counts differ.
func compare(jobwire, capture string) error {
	var report struct {
		Messages map[string]map[string]map[string]int
	}
	_, err := run(exec.Command(jobwire, "decode", "summary", capture, "--format", "json"), func(r io.Reader) error {
		return json.NewDecoder(r).Decode(&report)
	})
	if err != nil {
		return err
	}
	ours := map[string]int{}
	for direction, magic := range map[string]string{"to_server": "REQ", "to_client": "RES"} {
		for name, n := range report.Messages["gearman"][direction] {
			ours[magic+" "+name] += n
		}
	}
	theirs := map[string]int{}
	args := slices.Concat(gearman[1:], []string{"-r", capture, "-Y", "gearman.pkt_type", "-T", "fields", "-e", "gearman.magic_code", "-e", "gearman.pkt_type"})
	_, err = run(exec.Command(gearman[0], args...), func(r io.Reader) error {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			magics, codes, _ := strings.Cut(lines.Text(), "\t")
			m := strings.Split(magics, ",")
			for i, code := range strings.Split(codes, ",") {
				theirs[m[i]+" "+typeName(code)]++
			}
		}
		return lines.Err()
	})
	if err != nil {
		return err
	}
	if maps.Equal(ours, theirs) {
		fmt.Printf("%s: both count %v\n", filepath.Base(capture), ours)
		return nil
	}
	fmt.Printf("%s: jobwire counts %v,\n%*s tshark %v\n", filepath.Base(capture), ours, len(filepath.Base(capture))+1, "", theirs)
	return nil
}

// typeName returns the name in the specification of a packet type that bigcapture writes.
func typeName(code string) string {
	names := map[int]string{7: "SUBMIT_JOB", 8: "JOB_CREATED", 13: "WORK_COMPLETE", 30: "GRAB_JOB_UNIQ", 31: "JOB_ASSIGN_UNIQ"}
	n, _ := strconv.Atoi(code)
	if name := names[n]; name != "" {
		return name
	}
	return "type " + code
}
