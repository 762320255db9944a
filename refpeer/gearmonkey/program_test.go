package gearmonkey

import (
	"fmt"
	"testing"

	"jobwire/codec"
)

// TestEditedPrograms: a client follows its edited sequence.
func TestEditedPrograms(t *testing.T) {
	type sequence = Sequence
	for name, tt := range map[string]struct {
		edit   func(sequence) sequence
		script string
	}{
		"dropped": {
			func(s sequence) sequence { return s.Edit("PUBLISH_CREATE", func(Step) []Step { return nil }) },
			lines("Client -> Server: INCR_UID f", "Server -> Client: ID 7",
				"Client -> Server: HMSET_IDLE f 7 x", "Server -> Client: simple OK",
				"Client -> Server: LPUSH_QUEUE f normal 7", "Server -> Client: integer 1")},
		"swapped, and repeated": {
			func(s sequence) sequence {
				return s.Swap("HMSET_IDLE", "LPUSH_QUEUE").Edit("PUBLISH_CREATE", func(st Step) []Step { return []Step{st, st} })
			},
			lines("Client -> Server: INCR_UID f", "Server -> Client: ID 7",
				"Client -> Server: LPUSH_QUEUE f normal 7", "Server -> Client: integer 1",
				"Client -> Server: PUBLISH_CREATE f 7", "Server -> Client: integer 1",
				"Client -> Server: PUBLISH_CREATE f 7", "Server -> Client: integer 1",
				"Client -> Server: HMSET_IDLE f 7 x", "Server -> Client: simple OK")},
		"changed": {
			func(s sequence) sequence {
				return s.Edit("LPUSH_QUEUE", func(st Step) []Step {
					st.Do = `command RPUSH queue:{FN}:{PRIO} {ID}/{ID} "" "a b"`
					return []Step{st}
				})
			},
			lines("Client -> Server: INCR_UID f", "Server -> Client: ID 7",
				"Client -> Server: HMSET_IDLE f 7 x", "Server -> Client: simple OK",
				"Client -> Server: PUBLISH_CREATE f 7", "Server -> Client: integer 1",
				`Client -> Server: command RPUSH queue:f:normal 7/7 "" "a b"`, "Server -> Client: integer 1")},
		"judged otherwise": {
			func(s sequence) sequence {
				s = s.Edit("HMSET_IDLE", func(Step) []Step { return nil })
				return s.Edit("PUBLISH_CREATE", func(st Step) []Step {
					st.Then = func(*Task, *codec.Message) error { return fmt.Errorf("enough") }
					return []Step{st}
				})
			},
			lines("Client -> Server: INCR_UID f", "Server -> Client: ID 7",
				"Client -> Server: PUBLISH_CREATE f 7", "Server -> Client: integer 1")},
	} {
		t.Run(name, func(t *testing.T) {
			p := Document()
			before := fmt.Sprint(names(p.Run))
			edited := tt.edit(p.Run)
			if got := fmt.Sprint(names(p.Run)); got != before {
				t.Errorf("the original was edited: %s", got)
			}
			p.Run = edited
			against(t, tt.script, func(t *testing.T, conn *Conn) {
				_, err := NewClient(conn, p).Run(t.Context(), "f", []byte("x"), RunOptions{})
				if (err != nil) != (name == "judged otherwise") {
					t.Errorf("Run: %v", err)
				}
			})
		})
	}
}

func names(s Sequence) []string {
	var n []string
	for i := range s {
		n = append(n, s[i].Name())
	}
	return n
}

// TestMistakesInPrograms: an invalid step is reported when it is edited or compiled, not when it is performed.
func TestMistakesInPrograms(t *testing.T) {
	s := Document().Run
	keep := func(st Step) []Step { return []Step{st} }
	for name, mistake := range map[string]func(){
		"edit of a step that is not there": func() { s.Edit("HGET_INPUT", keep) },
		"swap of a step that is not there": func() { s.Swap("INCR_UID", "INCR") },
		"unknown row":                      func() { Sequence{{Do: "INCR_UIDS {FN}"}}.compile() },
		"no row":                           func() { Sequence{{}}.compile() },
		"bad quoting":                      func() { Sequence{{Do: `INCR_UID "f`}}.compile() },
		"unknown placeholder":              func() { Sequence{{Do: "INCR_UID {FM}"}}.compile() },
		"open placeholder":                 func() { Sequence{{Do: "INCR_UID {FN"}}.compile() },
		"mistake in a cure":                func() { Sequence{{Do: "INCR_UID {FN}", Cure: Sequence{{Do: "INCR"}}}}.compile() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nothing is said", name)
				}
			}()
			mistake()
		}()
	}
}
