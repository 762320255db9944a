package audit

import (
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/judge"
)

func init() {
	for _, r := range []struct {
		protocol *codec.Protocol
		checker  func(*judge.Monitor) judge.Checker
		scenario Scenario
	}{
		{gearman.Protocol, judge.Gearman, Gearman},
		{beanstalk.Protocol, judge.Beanstalk, Beanstalk},
		{danga.Protocol, judge.Danga, Danga},
		{gearmonkey.Protocol, judge.GearMonkey, GearMonkey},
	} {
		codec.RegisterProtocol(r.protocol)
		judge.Register(r.protocol, r.checker)
		Register(r.protocol, r.scenario)
	}
}
