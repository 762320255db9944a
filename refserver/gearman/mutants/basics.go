package mutants

// basics are faults of section "Client/Worker": echoes and errors.
var basics = []Mutant{
	{Name: "first-echo-reversed", About: "Four bytes that a server is asked to echo first of all come back in another byte order.",
		Kills: cases("packet.in-pieces packet.cut-off echo.client admin.with-packet-in-a-segment shutdown.now"),
		Hook: func(b *bench) {
			b.out("ECHO_RES", func(_ *conn, f *frame) verdict {
				if b.heard == 1 {
					return reversed(f)
				}
				return verdict{}
			})
		}},
	{Name: "idle-worker-echo-reversed", About: "Four bytes that a worker without a job has echoed come back in another byte order.",
		Kills: cases("echo.worker echo.asleep"),
		Hook: func(b *bench) {
			b.out("ECHO_RES", func(c *conn, f *frame) verdict {
				if len(b.peers[c].functions) == 0 || b.find(func(j *job) bool { return j.worker == c }) != nil {
					return verdict{}
				}
				return reversed(f)
			})
		}},
	{Name: "empty-echo-passed-over", About: "An ECHO_REQ without data is not answered.",
		Kills:  cases("echo.empty"),
		Faults: []string{"drop ECHO_REQ when data="}},
	{Name: "echo-of-seven-bits", About: "An echo has lost the highest bit of every byte.",
		Kills: cases("echo.binary"),
		Hook: func(b *bench) {
			b.out("ECHO_RES", func(_ *conn, f *frame) verdict {
				out := []byte(arg(f, 0))
				for i := range out {
					out[i] &= 0x7f
				}
				return replace(changed(f, 0, string(out)))
			})
		}},
	{Name: "echo-cut-at-64-kibibytes", About: "An echo is cut off behind 64 KiB.",
		Kills: cases("echo.large"),
		Hook: func(b *bench) {
			b.out("ECHO_RES", func(_ *conn, f *frame) verdict {
				return replace(changed(f, 0, arg(f, 0)[:min(len(f.Arg(0)), 64<<10)]))
			})
		}},
	{Name: "first-echo-overtaken", About: "The first echo on a connection is overtaken by what is answered next.",
		Kills:  cases("echo.order packet.two-in-a-segment admin.with-packet-in-a-segment"),
		Faults: []string{"delay ECHO_RES 60ms nth=1"}},
	{Name: "error-without-text", About: "The ERROR to an unknown option lacks the text and the NUL before it.",
		Kills: cases("error.form option.unknown option.empty field.connection-survives"),
		Hook: func(b *bench) {
			b.out("ERROR", func(_ *conn, f *frame) verdict {
				if code := arg(f, 0); code == "UNKNOWN_OPTION" {
					return raw([]byte("\x00RES\x00\x00\x00\x13\x00\x00\x00\x0eUNKNOWN_OPTION"))
				}
				return verdict{}
			})
		}},
	{Name: "workers-errors-unsaid", About: "A worker that has announced nothing is not told of its errors.",
		Kills: cases("error.to-worker worker.unknown-handle"),
		Hook: func(b *bench) {
			b.on(reports, func(c *conn, f *frame) {
				if len(b.peers[c].functions) > 0 {
					b.pass(c, f)
				}
			})
		}},
}

// reversed sends an echo of four bytes as a machine of the other byte order would.
func reversed(f *frame) verdict {
	d := f.Arg(0)
	if len(d) != 4 {
		return verdict{}
	}
	return replace(changed(f, 0, string([]byte{d[3], d[2], d[1], d[0]})))
}
