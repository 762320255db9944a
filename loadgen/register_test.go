package loadgen

func init() {
	for _, a := range []*Adapter{Gearman, GearMonkey, Beanstalk, Danga} {
		Register(a)
	}
}
