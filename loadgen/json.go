package loadgen

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"jobwire/internal/textfile"
)

// WriteJSON writes the report as one JSON object.
func WriteJSON(w io.Writer, r *Report) error { return writeIndented(w, r) }

func writeIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// SavedResult is what a file with a result contains, for error messages.
const SavedResult = "a result that 'bench run --output' has saved"

// ReadReports reads JSON that WriteJSON or [Comparison.WriteJSON] has written. It returns one report, or the runs of
// the comparison.
func ReadReports(in io.Reader) ([]*Report, error) {
	var saved struct {
		Report
		Runs []*Report `json:"runs"`
	}
	switch err := json.NewDecoder(textfile.NewReader(in, SavedResult)).Decode(&saved); {
	case err == io.EOF:
		return nil, errors.New("the file is empty, so its run has not ended")
	case err != nil:
		return nil, fmt.Errorf("expected "+SavedResult+": %w", err)
	}
	if saved.Runs == nil {
		saved.Runs = []*Report{&saved.Report}
	}
	if len(saved.Runs) == 0 {
		return nil, errors.New("expected " + SavedResult + ", got a comparison without runs")
	}
	for _, r := range saved.Runs {
		if r == nil || r.Protocol == "" || r.Latency == nil {
			return nil, errors.New("expected " + SavedResult + ", with the keys protocol and latency_us")
		}
		if err := checkSaved(reflect.ValueOf(r).Elem()); err != nil {
			return nil, fmt.Errorf("expected "+SavedResult+": %w", err)
		}
	}
	return saved.Runs, nil
}
