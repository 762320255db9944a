package planted

import (
	"fmt"

	"jobwire/codec/beanstalk"
)

// inBeanstalk are the faults of Beanstalk servers.
var inBeanstalk = []Fault{
	{Name: "kick-of-none", Protocol: "beanstalk", Oracle: Exit,
		About: "A kick of no jobs divides by zero.",
		Hook:  upon("kick", exits(2, "panic: runtime error: integer divide by zero\n"), is("Bound", "0"))},
	{Name: "buried-freed-twice", Protocol: "beanstalk", Oracle: Signal,
		About: "A job that is deleted by the one who has just buried it is freed twice.",
		Hook: upon("delete", killedBy("ABRT", "free(): double free detected in tcache 2\n"), after("bury"),
			func(p *peer, f *frame) bool { return p.job == arg(f, "Job ID") }).with(reserving)},
	{Name: "tube-of-200", Protocol: "beanstalk", Oracle: Sanitizer,
		About: "A tube's name of 200 bytes, the most there may be, is read beyond its end.",
		Hook: upon("watch", exits(1, `==7==ERROR: AddressSanitizer: stack-buffer-overflow on address 0x7ffc00c8 at pc 0x5581 bp 0x7ffd sp 0x7ffd
READ of size 201 at 0x7ffc00c8 thread T0
    #0 0x5581 in tube_find tube.c:73
SUMMARY: AddressSanitizer: stack-buffer-overflow tube.c:73 in tube_find
`), sized("Tube", beanstalk.MaxName))},
	{Name: "ignore-not-answered", Protocol: "beanstalk", Oracle: Hang,
		About: "A client that watches twice and then ignores is not heard any more.",
		Hook:  upon("ignore", deafens, after("watch watch"))},
	{Name: "waiting-worker-blocks", Protocol: "beanstalk", Oracle: ServerHang,
		About: "A worker that watches a tube and leaves while it waits for a job blocks the server.",
		Hook:  leaving(blocks, after("watch reserve"))},
	{Name: "delayed-release-spins", Protocol: "beanstalk", Oracle: Spin,
		About: "A timer that a release with a delay sets is looked at for ever.",
		Hook:  upon("release", spins, after("reserve"), atLeast("Delay", 1))},
	{Name: "refused-body-kept", Protocol: "beanstalk", Oracle: Memory,
		About: "The body of a put that is refused for its end takes memory for good.",
		Hook:  refused(beanstalk.RulePutCRLF, leaks)},
	{Name: "reservation-keeps-descriptor", Protocol: "beanstalk", Oracle: Descriptors,
		About: "A worker that leaves with a job leaves a descriptor behind.",
		Hook:  leaving(leaksDescriptor, func(p *peer, _ *frame) bool { return p.job != "" }).with(reserving)},
	{Name: "body-of-4096-counted-4095", Protocol: "beanstalk", Oracle: Framing,
		About: "A body of 4096 bytes is told to have one less.",
		Hook: told("RESERVED FOUND", func(_ *bench, _ *peer, f *frame) verdict {
			return raw(fmt.Sprintf("%s %s 4095\r\n%s\r\n", f.Type.Name, arg(f, "Job ID"), arg(f, "Body")))
		}, sized("Body", 4096))},
	{Name: "kicked-below-zero", Protocol: "beanstalk", Oracle: Rule,
		About: "A kick of 2147483648 jobs or more is answered with a number below zero.",
		Hook:  instead("kick", func(b *bench, p *peer, _ *frame) { b.blurt(p, "KICKED", "KICKED -1\r\n") }, atLeast("Bound", 1<<31))},
	{Name: "empty-body-of-another", Protocol: "beanstalk", Oracle: Disclosure,
		About: "In the place of an empty body the one that another client put last is given.",
		Hook: func(b *bench) {
			var last string
			var of *peer
			b.on("put", func(p *peer, f *frame) {
				if body := arg(f, "Body"); body != "" {
					last, of = body, p
				}
				b.pass(p, f)
			})
			b.out("RESERVED FOUND", func(p *peer, f *frame) verdict {
				if arg(f, "Body") != "" || last == "" || of == p {
					return verdict{}
				}
				return b.changed(f, 1, last)
			})
		}},
	{Name: "touched-job-lost", Protocol: "beanstalk", Oracle: Lost,
		About: "A job whose worker leaves right behind a touch is lost.",
		Hook: leaving(func(b *bench, p *peer) {
			b.secretly(func() { b.give(p, "delete", p.job) })
		}, after("touch"), func(p *peer, _ *frame) bool { return p.job != "" }).with(reserving)},
	{Name: "last-priority-put-twice", Protocol: "beanstalk", Oracle: Wrong,
		About: "A job of the lowest priority is put twice.",
		Hook: func(b *bench) {
			b.on("put", func(p *peer, f *frame) {
				b.pass(p, f)
				if atLeast("Priority", beanstalk.MaxPriority)(p, f) {
					b.secretly(func() { b.pass(p, f) })
				}
			})
		}},
	{Name: "default-not-ignored", Protocol: "beanstalk", Oracle: Stray,
		About: "A worker that ignores default goes on being given its jobs.",
		Hook:  instead("ignore", func(b *bench, p *peer, _ *frame) { b.say(p, "WATCHING", "1") }, is("Tube", "default"), after("watch"))},
	{Name: "tube-of-64-not-used", Protocol: "beanstalk", Oracle: Stray,
		About: "Jobs for a tube with a name of 64 bytes are put into the tube that was used before.",
		Hook:  instead("use", func(b *bench, p *peer, f *frame) { b.say(p, "USING", arg(f, "Tube")) }, sized("Tube", 64))},
	{Name: "list-told-to-another", Protocol: "beanstalk", Oracle: Disturbance,
		About: "The list of tubes is sent to the oldest of the other connections in use too.",
		Hook: told("list-reply", func(b *bench, p *peer, f *frame) verdict {
			if o := b.other(p); o != nil && p.now == "list-tubes" {
				b.say(o, "list-reply", args(f)...)
			}
			return verdict{}
		})},
}

// reserving notes which job a worker has reserved and not given back.
func reserving(b *bench) {
	b.out("RESERVED", func(p *peer, f *frame) verdict {
		p.job = arg(f, "Job ID")
		return verdict{}
	})
	b.out("DELETED RELEASED", func(p *peer, _ *frame) verdict {
		p.job = ""
		return verdict{}
	})
}
