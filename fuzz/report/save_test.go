package report

import (
	"bytes"
	"testing"
)

// TestSaved tests that a report that was saved and read is written in each format as before.
func TestSaved(t *testing.T) {
	var file bytes.Buffer
	if err := Save(&file, example()); err != nil {
		t.Fatal(err)
	}
	r, err := Read(file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := example()
	for _, f := range want.Findings { // JSON has no invalid UTF-8
		f.Text, f.Output = string(bytes.ToValidUTF8([]byte(f.Text), []byte("�"))), string(bytes.ToValidUTF8([]byte(f.Output), []byte("�")))
	}
	want.Target = string(bytes.ToValidUTF8([]byte(want.Target), []byte("�")))
	for format, write := range Formats {
		var before, after bytes.Buffer
		if err := write(&before, want); err != nil {
			t.Fatal(err)
		}
		if err := write(&after, r); err != nil || !bytes.Equal(before.Bytes(), after.Bytes()) {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", format, err, after.Bytes(), before.Bytes())
		}
	}
	for _, text := range []string{"", "{}", "[]", `{"schema_version": 99, "protocol": "gearman"}`, `{"schema_version": 1, "protocol": "gearman", "findings": [null]}`} {
		if _, err := Read([]byte(text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
