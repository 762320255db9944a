package fuzzcmd

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/charmbracelet/x/vt"

	"jobwire/fuzz"
	"jobwire/fuzz/report"
	"jobwire/fuzz/triage"
	"jobwire/internal/screen"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestLiveWidths compares the live display of a run on terminals of several widths with golden files.
func TestLiveWidths(t *testing.T) {
	l := &live{duration: 90 * time.Second, title: screen.Title{Name: "jobwire fuzz gearman", About: "gearmand -p {port} -t 1"}}
	for i := range 30 {
		l.update(fuzz.Stats{Elapsed: time.Duration(i+1) * time.Second, Executions: int64(i * i * 100), Messages: int64(i * i * 700),
			Corpus: 2500 + 10*i, Features: 300 + i, Starts: i / 2, Doing: "minimizing",
			Counts: triage.Counts{Unexamined: 25, Examined: 7, NotReproduced: 1, Duplicates: 40}})
	}
	for i, level := range []string{"medium", "low", "critical", "medium", "high", "critical"} {
		l.found(&report.Finding{Name: fmt.Sprint(i % 5), Level: level, Title: fmt.Sprintf("finding %d after CAN_DO_TIMEOUT with a timeout above 2^64", i)})
	}
	l.dropped("4")
	for _, width := range []int{60, 80, 120} {
		synctest.Test(t, func(t *testing.T) {
			term := vt.NewSafeEmulator(width, 24)
			s := screen.Start(lineEnds{term}, screen.Options{Width: width, Height: 24}, l.frame)
			time.Sleep(time.Second)
			synctest.Wait()
			var got bytes.Buffer
			for line := range strings.Lines(strings.TrimRightFunc(term.String(), unicode.IsSpace)) {
				fmt.Fprintln(&got, strings.TrimRightFunc(line, unicode.IsSpace))
			}
			s.Stop()
			name := fmt.Sprintf("testdata/live-%d.txt", width)
			if *update {
				if err := os.WriteFile(name, got.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s: got\n%s\nwant\n%s%v", name, got.Bytes(), want, err)
			}
		})
	}
	var none *live
	if none.update(fuzz.Stats{}) || none.found(&report.Finding{}) {
		t.Error("there is no live display")
	}
}

// lineEnds begins a new line at a line end, as the driver of a terminal does.
type lineEnds struct{ *vt.SafeEmulator }

func (e lineEnds) Write(p []byte) (int, error) {
	e.SafeEmulator.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
	return len(p), nil
}
