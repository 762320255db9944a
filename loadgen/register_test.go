package loadgen_test

import (
	"jobwire/loadgen"
	"jobwire/loadgen/protocols"
)

func init() {
	for _, a := range []*loadgen.Adapter{protocols.Gearman, protocols.GearMonkey, protocols.Beanstalk, protocols.Danga} {
		loadgen.Register(a)
	}
}
