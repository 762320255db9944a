package verdict

import "testing"

// TestTable checks that each row has its own name and, for cases, its own symbol and severity.
func TestTable(t *testing.T) {
	names, symbols, severities := map[Verdict]bool{}, map[string]bool{}, map[int]bool{}
	for _, row := range table {
		if names[row.Verdict] {
			t.Errorf("%s has two rows", row.Verdict)
		}
		names[row.Verdict] = true
	}
	for _, row := range Cases {
		if row.Symbol == "" || symbols[row.Symbol] || severities[row.Severity] || !names[row.Requirement] {
			t.Errorf("%s has no symbol, severity or requirement of its own: %+v", row.Verdict, row)
		}
		symbols[row.Symbol], severities[row.Severity] = true, true
		if row.Verdict.Passes() && row.Verdict.FailsRun() || row.Verdict.FailsRun() != (row.Tone == "bad") {
			t.Errorf("%s fails the run: %v, but its tone is %s", row.Verdict, row.Verdict.FailsRun(), row.Tone)
		}
	}
	if unknown := Verdict("unknown"); unknown.FailsRun() || unknown.Passes() {
		t.Error("an unknown verdict has a meaning")
	}
}
