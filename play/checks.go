package play

import (
	"jobwire/codec/transcript"
	"jobwire/internal/watch"
)

// Watch makes a run inform w about samples and about its end. If w is nil, it does not.
func (o *Options) Watch(w *watch.Watcher) {
	if o.AtSample, o.AtEnd = nil, nil; w != nil {
		o.AtEnd = w.AtEnd
		o.AtSample = func(s transcript.Sample) { w.AtSample(s.Name, s.Size) }
	}
}

// Checks returns the checks of the server's process that the @watch lines of a script request.
func Checks(s *transcript.Script) ([]watch.Check, error) {
	var all []watch.Check
	for _, m := range s.Meta {
		if m.Key != "watch" {
			continue
		}
		c, err := watch.ParseCheck(m.Value)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}
