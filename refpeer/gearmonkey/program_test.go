package gearmonkey

import "testing"

// TestMistakesInPrograms: an invalid step is reported when it is compiled, not when it is performed.
func TestMistakesInPrograms(t *testing.T) {
	for name, mistake := range map[string]func(){
		"unknown row":         func() { Sequence{{Do: "INCR_UIDS {FN}"}}.compile() },
		"no row":              func() { Sequence{{}}.compile() },
		"bad quoting":         func() { Sequence{{Do: `INCR_UID "f`}}.compile() },
		"unknown placeholder": func() { Sequence{{Do: "INCR_UID {FM}"}}.compile() },
		"open placeholder":    func() { Sequence{{Do: "INCR_UID {FN"}}.compile() },
		"mistake in a cure":   func() { Sequence{{Do: "INCR_UID {FN}", Cure: Sequence{{Do: "INCR"}}}}.compile() },
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
