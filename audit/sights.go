package audit

import (
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
)

// noted is how a message changes what is known, before or behind its being an occasion.
type noted struct {
	first bool // before
	do    func(*sight, *line, *codec.Frame)
}

// sights are by protocol, who sends a message, and its type.
var sights = map[*codec.Protocol][2]map[string]noted{
	gearman.Protocol: {
		codec.Peer: alike(map[string]noted{
			"SUBMIT_JOB SUBMIT_JOB_BG SUBMIT_JOB_HIGH SUBMIT_JOB_HIGH_BG SUBMIT_JOB_LOW SUBMIT_JOB_LOW_BG SUBMIT_JOB_EPOCH SUBMIT_JOB_SCHED SUBMIT_REDUCE_JOB SUBMIT_REDUCE_JOB_BACKGROUND": {true,
				func(s *sight, l *line, f *codec.Frame) {
					s.asks(l, key{string(f.Arg(0)), string(f.Arg(1))}, 0)
				}},
			"WORK_COMPLETE WORK_FAIL WORK_EXCEPTION": {true, is(ended)},
		}),
		codec.Server: alike(map[string]noted{
			"JOB_CREATED": {true, func(s *sight, l *line, f *codec.Frame) { s.gives(l, string(f.Arg(0))) }},
			"ERROR":       {true, func(_ *sight, l *line, _ *codec.Frame) { l.asked = nil }}, // it may answer one of them
			"JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL": {true, is(assigned)},
			"WORK_COMPLETE WORK_FAIL WORK_EXCEPTION":    {true, is(ended)},
		}),
	},
	beanstalk.Protocol: {
		codec.Peer: alike(map[string]noted{
			"put": {false, func(s *sight, l *line, _ *codec.Frame) { s.asks(l, key{}, 0) }},
			"use": {true, func(s *sight, l *line, f *codec.Frame) { s.tubes[string(f.Arg(0))], l.chose = true, true }},
			"watch": {false, func(s *sight, l *line, f *codec.Frame) {
				if s.tubes[string(f.Arg(0))] = true; len(l.tubes) < maxAsked && !l.watches(f) {
					l.tubes = append(l.tubes, string(f.Arg(0)))
				}
			}},
			"ignore": {false, func(_ *sight, l *line, f *codec.Frame) {
				l.narrowed = l.narrowed || string(f.Arg(0)) == "default"
				for i, t := range l.tubes {
					if t == string(f.Arg(0)) {
						l.tubes = append(l.tubes[:i:i], l.tubes[i+1:]...)
						break
					}
				}
			}},
			"delete": {false, is(ended)}, // if it may; then it is gone
		}),
		codec.Server: alike(map[string]noted{
			"INSERTED BURIED_JOB": {true, func(s *sight, l *line, f *codec.Frame) { s.gives(l, string(f.Arg(0))) }},
			"RESERVED":            {false, func(_ *sight, l *line, _ *codec.Frame) { l.says("RESERVED") }},
		}),
	},
	danga.Protocol: {
		codec.Peer: alike(map[string]noted{
			"job_create_req": {true, func(s *sight, l *line, f *codec.Frame) {
				k := min(f.Arg(3)[0], danga.AsyncThrow)
				l.kinds[k] = true
				s.asks(l, key{string(f.Arg(0)), string(f.Arg(1))}, k)
			}},
			"worker_connect": {true, func(_ *sight, l *line, _ *codec.Frame) { l.says("worker_connect") }},
			"worker_sleep":   {true, func(_ *sight, l *line, _ *codec.Frame) { l.says("worker_sleep") }},
		}),
		codec.Server: alike(map[string]noted{
			"job_create_res": {true, func(s *sight, l *line, f *codec.Frame) {
				name := ""
				if present(s, l, f) {
					name = string(f.Arg(0))
				}
				s.gives(l, name)
			}},
		}),
	},
}

func is(st state) func(*sight, *line, *codec.Frame) {
	return func(s *sight, _ *line, f *codec.Frame) { s.becomes(f.Arg(0), st) }
}

func (l *line) says(typ string) {
	if l.said == nil {
		l.said = map[string]int{}
	}
	l.said[typ]++
}
