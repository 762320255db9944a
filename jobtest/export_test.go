package jobtest

// MaxCaseTime is the limit of the real time of a case.
var MaxCaseTime = &maxCaseTime
