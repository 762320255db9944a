package loadgen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"jobwire/internal/textfile"
	"jobwire/loadgen/latency"
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
		for _, file := range filesOf(name) {
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

// filesOf returns the .json files of a folder. If name is not a folder, it returns name.
func filesOf(name string) []string {
	if st, err := os.Stat(name); err != nil || !st.IsDir() {
		return []string{name}
	}
	files, _ := filepath.Glob(filepath.Join(name, "*.json")) // fails only if the pattern is malformed
	return files
}

// ReadFile reads the reports in a file, as [ReadReports] does.
func ReadFile(file string) ([]*Report, error) {
	text, err := textfile.Read(file, SavedResult)
	if err != nil {
		return nil, err
	}
	runs, err := ReadReports(bytes.NewReader(text))
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

// Parts are the results of processes that ran shares of one load.
type Parts struct {
	parts  []Part
	logs   []*os.File
	unread []string // files without a result of a share, each with the reason
}

// ReadParts reads results of shares. Each argument is a file or a folder. The histogram log of FILE.json is FILE.hlog;
// logs among the arguments are ignored. Files without the result of a share are left out, see [Merged.LeftOut].
// ReadParts returns an error if a file or folder does not exist, or if no file has a result.
func ReadParts(args []string) (*Parts, error) {
	p := &Parts{}
	for _, arg := range args {
		if _, err := os.Stat(arg); err != nil {
			p.Close()
			return nil, err
		}
		for _, name := range filesOf(arg) {
			if strings.HasSuffix(name, ".hlog") {
				continue
			}
			if why := p.read(name); why != "" {
				p.unread = append(p.unread, why)
			}
		}
	}
	if len(p.parts) == 0 {
		return nil, errors.New(strings.Join(append([]string{"expected the results of the shares of a load, got none"},
			p.unread...), "\n"))
	}
	return p, nil
}

// read reads a result and opens its log. It returns the reason if the file has no result of a share.
func (p *Parts) read(name string) (why string) {
	reports, err := ReadFile(name)
	switch {
	case err != nil:
		return err.Error()
	case len(reports) != 1 || reports[0].Share == nil:
		return name + ": the result of a whole load, not of a share of one (bench run --shares)"
	}
	log, err := os.Open(strings.TrimSuffix(name, ".json") + ".hlog")
	if err != nil {
		return name + ": no histogram log: " + err.Error()
	}
	p.logs = append(p.logs, log)
	p.parts = append(p.parts, Part{name, reports[0], log})
	return ""
}

// Merge merges the parts as [Merge] does.
func (p *Parts) Merge(objectives []*Objective, out *latency.Log) (*Report, error) {
	r, err := Merge(p.parts, objectives, out)
	if err != nil {
		return nil, err
	}
	r.Merged.LeftOut = append(r.Merged.LeftOut, p.unread...)
	return r, nil
}

// Close closes the logs.
func (p *Parts) Close() {
	for _, log := range p.logs {
		log.Close()
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
