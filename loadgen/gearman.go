package loadgen

import "jobwire/codec/gearman"

// Gearman is the adapter for Gearman servers.
var Gearman = &Adapter{Protocol: gearman.Protocol, Scenarios: []Scenario{
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
