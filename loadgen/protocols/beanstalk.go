package protocols

import (
	"jobwire/codec/beanstalk"
	"jobwire/loadgen"
)

// Beanstalk is the adapter for Beanstalk servers.
var Beanstalk = &loadgen.Adapter{Protocol: beanstalk.Protocol, Scenarios: []loadgen.Scenario{
	{Name: "cycle", About: "put, reserve, delete"},
	{Name: "background", About: "put jobs (only this part is measured), then reserve and delete them"},
	{Name: "drain", About: "put all jobs, then reserve and delete them (only this part is measured)"},
	{Name: "priorities", About: "as in cycle, with jobs of three priorities"},
	{Name: "updates", About: "as in cycle, with two touch commands for each job"},
	{Name: "status", About: "peek at a job that does not exist; no workers"},
	{Name: "chaos"},
	{Name: "crash"},
}}
