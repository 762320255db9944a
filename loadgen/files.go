package loadgen

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// GroupByTarget groups runs by their target. If all runs have the same target, the group is named after the argument.
func GroupByTarget(arg string, runs []*Report) []Group {
	var groups []Group
	for _, r := range runs {
		i := slices.IndexFunc(groups, func(g Group) bool { return g.Name == r.Target })
		if i < 0 {
			i = len(groups)
			groups = append(groups, Group{Name: r.Target})
		}
		groups[i].Runs = append(groups[i].Runs, r)
	}
	if len(groups) == 1 {
		groups[0].Name = arg
	}
	return groups
}

// ReadFiles reads the reports that an argument names: files or folders of .json files, separated by commas.
func ReadFiles(arg string) ([]*Report, error) {
	var all []*Report
	for name := range strings.SplitSeq(arg, ",") {
		files := []string{name}
		if st, err := os.Stat(name); err == nil && st.IsDir() {
			if files, err = filepath.Glob(filepath.Join(name, "*.json")); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			runs, err := ReadFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, runs...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: the folder contains no .json files", arg)
	}
	return all, nil
}

// ReadFile reads the reports in a file, as [ReadReports] does.
func ReadFile(file string) ([]*Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	runs, err := ReadReports(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return runs, nil
}

// ParseTolerance parses a number or a percentage, such as "0.1" or "10%".
func ParseTolerance(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || v < 0 || v >= 10 {
		return 0, fmt.Errorf("%q: expected a number from 0 to 10, such as 0.1, or a percentage, such as 10%%", text)
	}
	return v, nil
}

// Parts are the results and logs of processes that ran parts of one load.
type Parts struct {
	reports []*Report
	logs    []io.Reader
}

// ReadParts reads results (.json) and opens logs (.hlog). An argument is a file, or a folder with such files.
func ReadParts(args []string) (*Parts, error) {
	p := &Parts{}
	for _, arg := range args {
		files := []string{arg}
		if st, err := os.Stat(arg); err == nil && st.IsDir() {
			results, _ := filepath.Glob(filepath.Join(arg, "*.json")) // fails only if the pattern is malformed
			logs, _ := filepath.Glob(filepath.Join(arg, "*.hlog"))
			files = append(results, logs...)
		}
		for _, name := range files {
			if err := p.read(name); err != nil {
				p.Close()
				return nil, err
			}
		}
	}
	return p, nil
}

func (p *Parts) read(name string) error {
	if strings.HasSuffix(name, ".hlog") {
		f, err := os.Open(name)
		if err == nil {
			p.logs = append(p.logs, f)
		}
		return err
	}
	reports, err := ReadFile(name)
	p.reports = append(p.reports, reports...)
	return err
}

// Merge merges the parts as [Merge] does.
func (p *Parts) Merge(out *Log) (*Report, error) { return Merge(p.reports, p.logs, out) }

// Close closes the logs.
func (p *Parts) Close() {
	for _, log := range p.logs {
		log.(*os.File).Close()
	}
}

// maxPayloadFile is the maximum size of a file for the content of payloads, in bytes.
const maxPayloadFile = 16 << 20

// ReadPayload reads a file for [Config.Content]. It returns an error if the file is empty or longer than
// maxPayloadFile.
func ReadPayload(file string) ([]byte, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, maxPayloadFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) == 0:
		return nil, fmt.Errorf("%s is empty", file)
	case len(b) > maxPayloadFile:
		return nil, fmt.Errorf("%s is longer than %d bytes", file, maxPayloadFile)
	}
	return b, nil
}
