package fuzz

import "jobwire/codec"

// feature records what happened, and what happened before it, as coverage.
func (x *executor) feature(kind, a, b uint64) {
	h := mix(mix(kind, a), b)
	x.record.features = append(x.record.features, mix(x.last, h))
	x.last = h
}

func mix(h, v uint64) uint64 {
	h ^= v + 0x9e3779b97f4a7c15 + h<<6 + h>>2
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}

func typeHash(t *codec.Type) uint64 {
	if t == nil {
		return 0
	}
	return uint64(t.Index) + 1
}

func errHash(e *codec.Error) (h uint64) {
	for _, c := range []byte(e.Rule) {
		h = h*31 + uint64(c)
	}
	return h
}

func boolHash(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
