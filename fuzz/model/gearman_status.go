package model

import (
	"bytes"
	"fmt"
	"strconv"

	"jobwire/codec"
)

// progress checks the four values that follow the handle or unique ID in a status reply.
func (j *gJob) progress(m *gearman, r *codec.Frame) error {
	want := []string{"1", "0"}
	if j.state == gRunning {
		want[1] = "1"
	}
	for i, w := range want {
		if got := string(r.Arg(1 + i)); got != w {
			return wrong("expected %s %s, got %s, because the job is %s", r.Type.Fields[1+i].Name, w, got, j.state)
		}
	}
	if j.lost > 0 && j.numer == nil || j.statusUncertain || m.quirks[NoNumbers] {
		return nil // the specification does not say whether the progress of a disconnected worker counts
	}
	for i, w := range [][]byte{j.numer, j.denom} {
		n, _ := strconv.ParseUint(string(r.Arg(3+i)), 10, 64)
		if reported, err := strconv.ParseUint("0"+string(w), 10, 64); err == nil && n != reported {
			return &Complaint{Rule: "gearman.status.progress",
				Text: fmt.Sprintf("expected %s %d, because this is the value that the worker reported last",
					r.Type.Fields[3+i].Name, reported)}
		}
	}
	return nil
}

func (s gState) String() string { return [...]string{"queued", "scheduled", "running", "finished"}[s] }

// unknownStatus checks that a status reply describes a job that is neither known nor running.
func unknownStatus(r *codec.Frame) error {
	if string(r.Arg(1)) != "0" || string(r.Arg(2)) != "0" {
		return wrong("expected known 0 and running 0, because no such job exists")
	}
	return nil
}

// gStatus handles GET_STATUS: it expects STATUS_RES with the state and the progress of the job with a handle.
func gStatus(m *gearman, p *gPeer, f codec.Frame) {
	j := m.jobs[string(f.Arg(0))]
	rule := codec.RuleID("gearman.status.queued")
	switch {
	case j == nil:
		rule = "gearman.status.unknown"
	case j.state == gEnded:
		rule = "gearman.status.finished"
	case j.state == gRunning:
		rule = "gearman.status.running"
	}
	m.expect(p.conn, rule, "STATUS_RES", typed("STATUS_RES", func(r *codec.Frame) error {
		switch {
		case !bytes.Equal(r.Arg(0), f.Arg(0)):
			return wrong("expected the handle of the request, %s", f.Arg(0))
		case j == nil && m.quirks[Shared], j != nil && j.uncertain():
			return nil
		case j == nil || j.state == gEnded:
			return unknownStatus(r)
		}
		return j.progress(m, r)
	}))
}

// gStatusUnique handles GET_STATUS_UNIQUE: it expects STATUS_RES_UNIQUE with the state, the progress and the number of
// waiting clients of a job with a unique ID. Jobs of several functions may have that ID; the reply may describe any of
// them.
func gStatusUnique(m *gearman, p *gPeer, f codec.Frame) {
	unique := f.Arg(0)
	m.expect(p.conn, "gearman.status.unique", "STATUS_RES_UNIQUE", typed("STATUS_RES_UNIQUE", func(r *codec.Frame) error {
		if !bytes.Equal(r.Arg(0), unique) {
			return wrong("expected the unique ID of the request, %q", unique)
		}
		if len(unique) == 0 || string(unique) == "-" || m.quirks[Shared] {
			return nil
		}
		var err error
		found := false
		for _, fn := range m.functions {
			for _, j := range fn.jobs {
				if !bytes.Equal(j.unique, unique) {
					continue
				}
				found = true
				if j.uncertain() {
					return nil
				}
				if err = j.progress(m, r); err == nil && !j.leavers && string(r.Arg(5)) != string(gNumber(len(j.waits))) {
					err = wrong("expected a client count of %d, because %[1]d clients wait for the job", len(j.waits))
				}
				if err == nil {
					return nil
				}
			}
		}
		if !found {
			return unknownStatus(r)
		}
		return err
	}))
}
