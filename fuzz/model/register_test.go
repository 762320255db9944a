package model

import (
	codecbeanstalk "jobwire/codec/beanstalk"
	codecdanga "jobwire/codec/danga"
	codecgearman "jobwire/codec/gearman"
	codecgearmonkey "jobwire/codec/gearmonkey"
)

func init() {
	Register(codecgearman.Protocol, Gearman)
	Register(codecbeanstalk.Protocol, Beanstalk)
	Register(codecdanga.Protocol, Danga)
	Register(codecgearmonkey.Protocol, GearMonkey)
}
