package play

import (
	"jobwire/codec/transcript"
	"jobwire/internal/watch"
)

// Checks returns what the keys @watch of a script say about the process of the server.
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
