package mutants

import (
	"slices"
	"strings"

	"jobwire/refpeer/gearmonkey"
)

// fields changes what Client.get tells.
func fields(do func(t *task)) func(*program) { return then("HGETALL_JOB", do) }

// each changes the value of a field that Client.get tells.
func each(name string, do func(value string) string) func(*program) {
	return fields(func(t *task) {
		for i := range t.Job.Fields {
			if f := &t.Job.Fields[i]; f.Name == name {
				f.Value = do(f.Value)
			}
		}
	})
}

// told adds a field, or replaces it.
func told(t *task, name, value string) {
	t.Job.Fields = slices.DeleteFunc(t.Job.Fields, func(f gearmonkey.Field) bool { return f.Name == name })
	t.Job.Fields = append(t.Job.Fields, gearmonkey.Field{Name: name, Value: value})
}

// looking are faults of Client.get.
var looking = []Mutant{
	{Name: "idle-has-an-output", About: "A job that no worker has is shown with an output.",
		Kills: cases("blocking.goes-on-after-time-out look.idle"),
		Edit: fields(func(t *task) {
			if t.Job.Status() == "idle" {
				told(t, "output", "None")
			}
		})},
	{Name: "busy-is-idle", About: "A job that is worked on is shown as idle.",
		Kills: cases("look.busy"),
		Edit:  each("status", func(v string) string { return strings.Replace(v, "busy", "idle", 1) })},
	{Name: "two-fields-only", About: "Only status and output are told.",
		Kills: cases("look.all-fields"),
		Edit: fields(func(t *task) {
			t.Job.Fields = slices.DeleteFunc(t.Job.Fields, func(f gearmonkey.Field) bool { return f.Name != "status" && f.Name != "output" })
		})},
	{Name: "output-ends-at-its-nul", About: "An output is told up to its first NUL.",
		Kills: cases("look.binary"),
		Edit:  each("output", func(v string) string { v, _, _ = strings.Cut(v, "\x00"); return v })},
	{Name: "long-output-cut", About: "An output is told up to 64 KiB.",
		Kills: cases("look.long"),
		Edit:  each("output", func(v string) string { return v[:min(len(v), 1<<16)] })},
	{Name: "unknown-is-finished", About: "A job that is not there is shown as finished.",
		Kills: cases("look.unknown"),
		Edit: fields(func(t *task) {
			if len(t.Job.Fields) == 0 {
				told(t, "status", "success")
			}
		})},
	{Name: "looks-at-its-own-only", About: "A job of a function for which the client made none is not shown.",
		Kills: cases("look.of-another"),
		Edit: remembering(func(functions *[]string) func(*program) {
			return both(
				then("INCR_UID", func(t *task) { *functions = append(*functions, string(t.Function)) }),
				fields(func(t *task) {
					if !slices.Contains(*functions, string(t.Function)) {
						t.Job = gearmonkey.Job{}
					}
				}))
		})},
}
