package loadgen

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

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
