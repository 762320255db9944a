package protocols

import (
	"jobwire/codec/danga"
	"jobwire/loadgen"
)

const onlyOne = "a connection can wait for only one sync+wait job at a time"

// Danga is the adapter for servers of the Danga draft.
var Danga = &loadgen.Adapter{Protocol: danga.Protocol, Scenarios: []loadgen.Scenario{
	{Name: "cycle", About: "create (sync+wait), assign, complete, result", WindowWhy: onlyOne},
	{Name: "background", About: "create jobs without results (only this part is measured), then process them"},
	{Name: "drain", About: "create all jobs, then process them (only this part is measured)"},
	{Name: "updates", About: "as in cycle, with two job_status_announce messages for each job", WindowWhy: onlyOne},
	{Name: "status", About: "job_status_req for a job that does not exist; no workers"},
	{Name: "chaos", WindowWhy: onlyOne},
}}
