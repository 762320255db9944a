package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/spf13/cobra"

	"jobwire/codec/transcript"
	"jobwire/fuzz"
	"jobwire/fuzz/planted"
	"jobwire/internal/target"
)

// Bounds of a self-test, for each server. The faultless one's are conversations too: how many a
// machine has in a second differs.
const (
	faultFor        = 10 * time.Minute // a fault is found within it, or counts as missed
	faultlessWithin = 10_000
	faultlessFor    = 60 * time.Second
	smallEnough     = 10 // lines of a transcript
)

// proof is what became of one planted fault.
type proof struct {
	Name    string  `json:"name"`
	Planted string  `json:"planted"`
	Oracle  string  `json:"oracle,omitempty"` // by which it was found
	Text    string  `json:"text,omitempty"`
	Lines   int     `json:"lines,omitempty"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"rate"`
	Plays   bool    `json:"plays"`
	Held    bool    `json:"held"`
	wire    []byte
}

// prove fuzzes faulty servers, each of which must be found out, and a faultless one.
func (o *fuzzOptions) prove(cmd *cobra.Command, sys *system) error {
	faults := []planted.Fault{planted.Faultless(sys.protocol.Name)}
	for _, f := range planted.All() {
		if f.Protocol == sys.protocol.Name && o.selected(f.Name) {
			faults = append(faults, f)
		}
	}
	if len(faults) == 1 && len(o.run) > 0 {
		return usage(fmt.Errorf("no planted fault of %s matches --run", sys.protocol.Title))
	}
	if len(o.run) > 0 {
		faults = faults[1:]
	}
	progress := newProgress(cmd.ErrOrStderr(), len(faults))
	held, start := true, time.Now()
	for _, f := range faults {
		if cmd.Context().Err() != nil {
			return &exit{exitFellShort, nil}
		}
		p, err := o.proveOne(cmd, sys, f)
		if err != nil {
			return err
		}
		progress.step()
		progress.clear()
		held = held && p.Held
		if o.format == "json" {
			json.NewEncoder(cmd.OutOrStdout()).Encode(p)
			continue
		}
		o.tellProof(cmd, p)
	}
	if o.format == "text" {
		fmt.Fprintf(cmd.OutOrStdout(), "\n%d servers in %.0f s\n", len(faults), time.Since(start).Seconds())
	}
	if !held {
		return &exit{exitFellShort, nil}
	}
	return nil
}

func (o *fuzzOptions) selected(name string) bool {
	for _, glob := range o.run {
		if ok, _ := path.Match(glob, name); ok {
			return true
		}
	}
	return len(o.run) == 0
}

func (o *fuzzOptions) proveOne(cmd *cobra.Command, sys *system, f planted.Fault) (*proof, error) {
	cfg, err := o.config(nil, sys)
	if err != nil {
		return nil, err
	}
	args := []string{"fuzz", sys.protocol.Name, "--planted", f.Name, "--listen", "127.0.0.1:{port}"}
	cfg.Start = func(ctx context.Context) (target.Target, error) { return startSelf(ctx, f.Name, args...) }
	cfg.First, cfg.Count, cfg.Duration, cfg.Minimise = true, 0, faultFor, 30*time.Second
	cfg.Patience = time.Second
	faultless := f.Hook == nil
	if faultless {
		cfg.Count, cfg.Duration = faultlessWithin, faultlessFor
		if o.count > 0 || o.duration > time.Minute {
			cfg.Count, cfg.Duration = o.count, o.duration
		}
	}
	p := &proof{Name: f.Name, Planted: f.Oracle, Held: faultless}
	cfg.Found = func(fd *fuzz.Finding) {
		p.Oracle, p.Text, p.Plays, p.wire = fd.Fault.Oracle, fd.Fault.String(), fd.Plays, body(fd)
		if fd.Script != nil {
			p.Lines = lines(fd.Script)
		}
		p.Held = !faultless && p.Plays && p.Lines <= smallEnough
	}
	if o.verbose {
		cfg.Log = func(line string) { fmt.Fprintf(cmd.ErrOrStderr(), "jobwire: %s: %s\n", f.Name, oneLine(line)) }
	}
	stats, err := fuzz.Run(cmd.Context(), *cfg)
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	p.Seconds = stats.Elapsed.Seconds()
	p.Rate = float64(stats.Conversations) / p.Seconds
	return p, nil
}

// lines counts the steps of a script.
func lines(s *transcript.Script) int { return len(s.Steps) }

func (o *fuzzOptions) tellProof(cmd *cobra.Command, p *proof) {
	w := cmd.OutOrStdout()
	switch {
	case p.Planted == "" && p.Oracle == "":
		fmt.Fprintf(w, "held   faultless: nothing found in %.0f s, %.0f conversations a second\n", p.Seconds, p.Rate)
	case p.Oracle == "":
		fmt.Fprintf(w, "MISSED %s (%s), in %.0f s, %.0f conversations a second\n", p.Name, p.Planted, p.Seconds, p.Rate)
	default:
		mark := "found "
		if !p.Held {
			mark = "SHORT "
		}
		fmt.Fprintf(w, "%s %s (%s) in %.1f s by %s, %d lines, plays: %v\n", mark, p.Name, p.Planted, p.Seconds, oneLine(p.Text), p.Lines, p.Plays)
	}
	if o.verbose || !p.Held {
		fmt.Fprintf(w, "%s\n", p.wire)
	}
}
