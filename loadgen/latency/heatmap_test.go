package latency

import (
	"testing"
	"time"
)

// TestHeatMapCountsEveryJob tests that the heatmap counts each job once, in the interval and the range of its latency.
func TestHeatMapCountsEveryJob(t *testing.T) {
	var f HeatMap
	for i, stages := range sampleIntervals() {
		f.Add(time.Duration(i)*length, length, stages[Total])
	}
	heat := f.Heat()
	if len(heat.Frames) != 2 {
		t.Fatalf("%d intervals", len(heat.Frames))
	}
	for i, f := range heat.Frames {
		sum := int64(0)
		for row, n := range f.Counts {
			sum += n
			// The jobs of the sample take 4 to 7 ms.
			if n > 0 && (heat.Edges[row+1] < 4000 || heat.Edges[row] > 7100) {
				t.Errorf("interval %d: %d jobs between %v and %v us", i, n, heat.Edges[row], heat.Edges[row+1])
			}
		}
		if sum != 1500 {
			t.Errorf("interval %d holds %d jobs", i, sum)
		}
	}
}
