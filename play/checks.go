package play

import (
	"jobwire/codec/transcript"
	"jobwire/internal/watch"
)

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
