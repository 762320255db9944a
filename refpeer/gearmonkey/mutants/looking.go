package mutants

import (
	"slices"
	"strings"

	"jobwire/refpeer/gearmonkey"
)

// fields changes what Client.get returns.
func fields(do func(t *task)) func(*program) { return then("HGETALL_JOB", do) }

// each changes the value of a field that Client.get returns.
func each(name string, do func(value string) string) func(*program) {
	return fields(func(t *task) {
		for i := range t.Job.Fields {
			if f := &t.Job.Fields[i]; f.Name == name {
				f.Value = do(f.Value)
			}
		}
	})
}

// setField adds a field, or replaces it.
func setField(t *task, name, value string) {
	t.Job.Fields = slices.DeleteFunc(t.Job.Fields, func(f gearmonkey.Field) bool { return f.Name == name })
	t.Job.Fields = append(t.Job.Fields, gearmonkey.Field{Name: name, Value: value})
}

// getFaults are faults of Client.get.
var getFaults = []fault{
	{Name: "idle-has-an-output", About: "The client shows an output for an idle job.",
		KilledBy: "blocking.goes-on-after-time-out look.idle", Edit: fields(func(t *task) {
			if t.Job.Status() == "idle" {
				setField(t, "output", "None")
			}
		})},
	{Name: "busy-is-idle", About: "The client shows a busy job as idle.",
		KilledBy: "look.busy", Edit: each("status", func(v string) string { return strings.Replace(v, "busy", "idle", 1) })},
	{Name: "two-fields-only", About: "The client shows only the status and the output of a job.",
		KilledBy: "look.all-fields", Edit: fields(func(t *task) {
			t.Job.Fields = slices.DeleteFunc(t.Job.Fields, func(f gearmonkey.Field) bool { return f.Name != "status" && f.Name != "output" })
		})},
	{Name: "output-ends-at-its-nul", About: "The client truncates the output at its first NUL.",
		KilledBy: "look.binary", Edit: each("output", func(v string) string { v, _, _ = strings.Cut(v, "\x00"); return v })},
	{Name: "long-output-cut", About: "The client truncates the output at 64 KiB.",
		KilledBy: "look.long", Edit: each("output", func(v string) string { return v[:min(len(v), 1<<16)] })},
	{Name: "unknown-is-finished", About: "The client shows a job that does not exist as finished.",
		KilledBy: "look.unknown", Edit: fields(func(t *task) {
			if len(t.Job.Fields) == 0 {
				setField(t, "status", "success")
			}
		})},
	{Name: "looks-at-its-own-only", About: "The client does not show jobs of functions for which it has created none.",
		KilledBy: "look.of-another", Edit: stateful(func(functions *[]string) func(*program) {
			return both(
				then("INCR_UID", func(t *task) { *functions = append(*functions, string(t.Function)) }),
				fields(func(t *task) {
					if !slices.Contains(*functions, string(t.Function)) {
						t.Job = gearmonkey.Job{}
					}
				}))
		})},
}
