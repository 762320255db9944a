package judge

// recent is a set of names that is forgotten from time to time.
type recent struct {
	names map[string]bool
	lost  bool // some are not in it any more
}

func (r *recent) add(name string) {
	if r.names == nil || len(r.names) >= maxPerConn {
		r.lost = r.names != nil
		r.names = map[string]bool{}
	}
	r.names[name] = true
}

func (r *recent) has(name string) bool { return r.names[name] }
