package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"jobwire/internal/textfile"
)

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

// ReadFiles reads the reports that an argument names: files or folders of .json files, separated by commas.
func ReadFiles(arg string) ([]*Report, error) {
	var all []*Report
	for name := range strings.SplitSeq(arg, ",") {
		for _, file := range FilesOf(name) {
			runs, err := ReadFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, runs...)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: the folder contains no .json files", arg)
	}
	return all, nil
}

// FilesOf returns the .json files of a folder. If name is not a folder, it returns name.
func FilesOf(name string) []string {
	if st, err := os.Stat(name); err != nil || !st.IsDir() {
		return []string{name}
	}
	files, _ := filepath.Glob(filepath.Join(name, "*.json")) // fails only if the pattern is malformed
	return files
}

// ReadFile reads the reports in a file, as [ReadReports] does.
func ReadFile(file string) ([]*Report, error) {
	text, err := textfile.Read(file, SavedResult)
	if err != nil {
		return nil, err
	}
	runs, err := ReadReports(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return runs, nil
}

// limits are the smallest and the largest absolute value of a number other than 0 in a saved result. With these, sums
// and quotients of the numbers are finite.
type limits struct {
	smallest, largest float64
	negative          bool // the number may be negative
}

// savedLimits are the limits by JSON key; "" has those of all other keys.
var savedLimits = map[string]limits{
	"":            {1e-12, 1e15, false},
	"at":          {0, 1e15, true},
	"correlation": {0, 1, true},
	"p":           {0, 1, false},
	"shares":      {1, 1000, false},
	"start":       {0, 1e15, true},
}

// checkSaved returns an error if a number in a saved result is outside its limits, so that figures and pages can be
// made of every result that is read. path has the JSON keys that lead from the result to v.
func checkSaved(v reflect.Value, path ...string) error {
	switch v.Kind() {
	case reflect.Float64, reflect.Int64, reflect.Int:
		f := 0.0
		if v.CanFloat() {
			f = v.Float()
		} else {
			f = float64(v.Int())
		}
		l, ok := savedLimits[path[len(path)-1]]
		if !ok {
			l = savedLimits[""]
		}
		if size := max(f, -f); size > l.largest || size > 0 && size < l.smallest || f < 0 && !l.negative {
			return fmt.Errorf("%s: %v is out of range", strings.Join(path, "."), f)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return checkSaved(v.Elem(), path...)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := checkSaved(v.Index(i), path...); err != nil {
				return err
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if err := checkSaved(v.MapIndex(k), append(path, k.String())...); err != nil {
				return err
			}
		}
	case reflect.Struct:
		var err error
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" {
				err = cmp.Or(err, checkSaved(v.Field(i), append(path, key)...))
			} else if f.Anonymous {
				err = cmp.Or(err, checkSaved(v.Field(i), path...))
			}
		}
		return err
	}
	return nil
}
