package loadgen

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jobwire/internal/peers"
)

func samplePage(t *testing.T) string {
	t.Helper()
	res := sampleResult()
	r := sampleReport(res)
	var f heatmap
	for i := range res.Series {
		f.expose(&res.Series[i])
	}
	r.distribute(&f, r.stages)
	r.Settled = 1234
	r.Target = `</script><b>"a" & 'b'`
	var b bytes.Buffer
	if err := WriteHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageStandsAlone(t *testing.T) {
	page := samplePage(t)
	for _, want := range []string{"1,000", "512 job requests each, 1 function; closed loop, window 128", "5.50 ms", "✓ passed", "none lost", "15.0 us", "1,234 jobs finished after the measurement", "jobwire 1.2.3"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if found := regexp.MustCompile(`(?i)(src|href)\s*=|@import|url\(`).FindString(page); found != "" {
		t.Errorf("the page fetches something: %s", found)
	}
	if strings.Contains(page, "</script><b>") {
		t.Error("a target's name is taken for markup")
	}
}

func TestHeatMapHoldsEveryJob(t *testing.T) {
	res := sampleResult()
	var f heatmap
	for i := range res.Series {
		f.expose(&res.Series[i])
	}
	heat := f.heat()
	if len(heat.Frames) != 2 {
		t.Fatalf("%d intervals", len(heat.Frames))
	}
	for i, f := range heat.Frames {
		sum := int64(0)
		for row, n := range f.Counts {
			sum += n
			// The sample's jobs take 4 to 7 ms.
			if n > 0 && (heat.Edges[row+1] < 4000 || heat.Edges[row] > 7100) {
				t.Errorf("interval %d: %d jobs between %v and %v us", i, n, heat.Edges[row], heat.Edges[row+1])
			}
		}
		if sum != 1500 {
			t.Errorf("interval %d holds %d jobs", i, sum)
		}
	}
}

// A browser draws all five figures, without an error.
func TestPageIsDrawn(t *testing.T) {
	browser := peers.Need(t, "chromium")
	var none bytes.Buffer
	if err := WriteHTML(&none, &Report{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(drawn(t, browser, none.String()), "no data"); n != 5+2 { // twice in the script
		t.Errorf("of a run without jobs, %d figures say that there are no data", n-2)
	}
	dom := drawn(t, browser, samplePage(t))
	for _, id := range []string{"spectrum", "rate", "depth", "latency", "heat"} {
		_, rest, _ := strings.Cut(dom, `id="`+id+`"`)
		rest, _, _ = strings.Cut(rest, "</figure>")
		mark := "<path"
		if id == "heat" {
			mark = "<canvas"
		}
		if !strings.Contains(rest, mark) {
			t.Errorf("%s is not drawn", id)
		}
	}
}

// drawn is the page when its script has run.
func drawn(t *testing.T, browser, page string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	dom, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom", "file://"+file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(dom)
}
