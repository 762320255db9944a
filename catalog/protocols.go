package catalog

import (
	"jobwire/audit"
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/danga"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/fuzz/model"
	"jobwire/internal/mutant"
	"jobwire/judge"
	"jobwire/loadgen/protocols"
	beanstalkpeer "jobwire/refpeer/beanstalk"
	beanstalkpeermutants "jobwire/refpeer/beanstalk/mutants"
	dangapeer "jobwire/refpeer/danga"
	dangapeermutants "jobwire/refpeer/danga/mutants"
	gearmanpeer "jobwire/refpeer/gearman"
	gearmanpeermutants "jobwire/refpeer/gearman/mutants"
	monkeypeer "jobwire/refpeer/gearmonkey"
	monkeypeermutants "jobwire/refpeer/gearmonkey/mutants"
	"jobwire/refserver"
	beanstalkserver "jobwire/refserver/beanstalk"
	beanstalkmutants "jobwire/refserver/beanstalk/mutants"
	dangaserver "jobwire/refserver/danga"
	dangamutants "jobwire/refserver/danga/mutants"
	gearmanserver "jobwire/refserver/gearman"
	gearmanmutants "jobwire/refserver/gearman/mutants"
	monkeyserver "jobwire/refserver/gearmonkey"
	monkeymutants "jobwire/refserver/gearmonkey/mutants"
)

// A decoder that recognizes protocols by their bytes tries the protocols in this order.
func init() {
	Add(Entry{
		Protocol: gearman.Protocol,
		Checker:  judge.Gearman,
		Stress:   audit.Gearman,
		Effects:  audit.GearmanEffects,
		Model:    model.Gearman,
		Load:     protocols.Gearman,
		Server: func(f Flags) func() refserver.Machine {
			retries := f.Uint("retries", 0, "fail a job after `NUMBER` workers have disconnected while running it (0: never)")
			return func() refserver.Machine { return gearmanserver.New(gearmanserver.Options{Retries: int(*retries)}) }
		},
		Lenient:     []codec.RuleID{gearman.RuleAdminSpacing},
		Programs:    map[string]mutant.Program{"Client": gearmanpeer.Drive, "Worker": gearmanpeer.Drive},
		Inject:      &gearmanmutants.System,
		Mutants:     gearmanmutants.All,
		Observe:     gearmanmutants.Observe,
		PeerMutants: gearmanpeermutants.All,
	})
	Add(Entry{
		Protocol: gearmonkey.Protocol,
		Checker:  judge.GearMonkey,
		Stress:   audit.GearMonkey,
		Effects:  audit.GearMonkeyEffects,
		Model:    model.GearMonkey,
		Load:     protocols.GearMonkey,
		Server: func(Flags) func() refserver.Machine {
			return func() refserver.Machine { return monkeyserver.New(monkeyserver.Options{}) }
		},
		Login:    monkeypeer.Login,
		Programs: map[string]mutant.Program{"Client": monkeypeer.Drive, "Worker": monkeypeer.Drive},
		Inject:   &monkeymutants.System,
		Mutants:  func() []mutant.Mutant { return append(monkeymutants.All(), monkeypeermutants.All()...) },
		Observe:  monkeymutants.Observe,
	})
	Add(Entry{
		Protocol: beanstalk.Protocol,
		Checker:  judge.Beanstalk,
		Stress:   audit.Beanstalk,
		Effects:  audit.BeanstalkEffects,
		Model:    model.Beanstalk,
		Load:     protocols.Beanstalk,
		Server: func(f Flags) func() refserver.Machine {
			draining := f.Bool("draining", false, "accept no new jobs, like beanstalkd after SIGUSR1")
			return func() refserver.Machine {
				return beanstalkserver.New(beanstalkserver.Options{Draining: *draining})
			}
		},
		Programs:    map[string]mutant.Program{"Client": beanstalkpeer.Drive, "Worker": beanstalkpeer.Drive},
		Inject:      &beanstalkmutants.System,
		Mutants:     beanstalkmutants.All,
		Observe:     beanstalkmutants.Observe,
		PeerMutants: beanstalkpeermutants.All,
	})
	Add(Entry{
		Protocol: danga.Protocol,
		Checker:  judge.Danga,
		Stress:   audit.Danga,
		Effects:  audit.DangaEffects,
		Model:    model.Danga,
		Load:     protocols.Danga,
		Server: func(f Flags) func() refserver.Machine {
			keep := f.Duration("keep-results", dangaserver.DefaultKeepTime,
				"`DURATION` for which the server keeps the result of a job that has a handle")
			return func() refserver.Machine { return dangaserver.New(dangaserver.Options{KeepTime: *keep}) }
		},
		Programs:    map[string]mutant.Program{"Application": dangapeer.Drive, "Worker": dangapeer.Drive},
		Inject:      &dangamutants.System,
		Mutants:     dangamutants.All,
		Observe:     dangamutants.Observe,
		PeerMutants: dangapeermutants.All,
	})
}
