package report

// What the tests use in addition to the exported identifiers.
var (
	Bottleneck = (*Report).saturation
	Trend      = (*Report).stationarity
)
