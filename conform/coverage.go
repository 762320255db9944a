package conform

import (
	"errors"
	"io/fs"
	"path"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/corpus"
)

// RuleCoverage lists the tests of one rule.
type RuleCoverage struct {
	codec.Rule
	TestedBy []string // names of cases, and vectors of the codec as "reject:NAME"
}

// Coverage returns all rules of the protocol with their tests: the cases of the suite, and the test vectors that the
// codec must reject.
func Coverage(s *Suite) ([]RuleCoverage, error) {
	by := map[codec.RuleID][]string{}
	for _, c := range s.First().Cases {
		for _, id := range c.Rules {
			by[id] = append(by[id], c.Family)
		}
	}
	src, err := fs.ReadFile(corpus.Files(s.Protocol.Name), "reject.wire")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	vectors, err := transcript.Parse(s.Protocol, path.Join("corpus", s.Protocol.Name, "reject.wire"), src)
	if err != nil {
		return nil, err
	}
	for _, v := range vectors {
		id := codec.RuleID(v.Value("rule"))
		by[id] = append(by[id], "reject:"+v.Value("case"))
	}
	var all []RuleCoverage
	for _, r := range s.Protocol.Rules {
		all = append(all, RuleCoverage{r, by[r.ID]})
	}
	return all, nil
}
