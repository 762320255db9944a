// Package protocols has the adapters of the protocols: what a load needs in addition to the message types.
package protocols

import (
	"jobwire/codec/gearman"
	"jobwire/loadgen"
)

// Gearman is the adapter for Gearman servers.
var Gearman = &loadgen.Adapter{Protocol: gearman.Protocol, Scenarios: []loadgen.Scenario{
	{Name: "cycle", About: "submit, grab, complete, result"},
	{Name: "background", About: "queue background jobs (only this part is measured), then process them"},
	{Name: "unique"},
	{Name: "drain"},
	{Name: "priorities"},
	{Name: "mixed"},
	{Name: "updates", About: "as in cycle, with two status and two data updates for each job"},
	{Name: "coalesce"},
	{Name: "chaos"},
	{Name: "crash"},
	{Name: "crash-unique"},
	{Name: "echo", About: "ECHO_REQ and ECHO_RES; no jobs and no workers"},
	{Name: "status", About: "GET_STATUS of a job that does not exist; no workers"},
}}
