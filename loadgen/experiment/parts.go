package experiment

import (
	"errors"
	"os"
	"strings"

	"jobwire/loadgen/latency"
	"jobwire/loadgen/report"
)

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
		for _, name := range report.FilesOf(arg) {
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
	reports, err := report.ReadFile(name)
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
func (p *Parts) Merge(objectives []*report.Objective, out *latency.Log) (*report.Report, error) {
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
