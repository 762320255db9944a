package judge

import (
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
)

func init() {
	Register(gearman.Protocol, Gearman)
	Register(beanstalk.Protocol, Beanstalk)
	Register(danga.Protocol, Danga)
	Register(gearmonkey.Protocol, GearMonkey)
}
