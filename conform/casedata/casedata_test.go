package casedata_test

import (
	"encoding/json"
	"slices"
	"testing"

	"jobwire/catalog"
	"jobwire/conform"
	"jobwire/conform/casedata"
)

// load returns the data of a built-in case without parameters.
func load(t *testing.T, protocol, id string) casedata.Case {
	t.Helper()
	e, err := catalog.Named(protocol)
	if err != nil {
		t.Fatal(err)
	}
	suite, err := conform.LoadSelected(e.Protocol, []string{id})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range casedata.Cases(suite) {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("no case %s", id)
	return casedata.Case{}
}

// TestMessages tests how parts describe messages with lengths in binary and in text, values and lists.
func TestMessages(t *testing.T) {
	for _, test := range []struct {
		protocol, id string
		step         int
		received     bool
		want         string
	}{
		{"gearman", "gearman.packet.big-endian", 0, false,
			`[{"bytes":"\u0000REQ\u0000\u0000\u0000\u0010\u0000\u0000\u0001\u0002"},{"bytes":"x","times":258}]`},
		{"gearman", "gearman.args.trailing-nul-handle", 4, true, `[{"bytes":"\u0000RES\u0000\u0000\u0000\u000b"},` +
			`{"length":{"of":[2,4],"plus":6,"width":4}},{"value":{"field":"Job handle","variable":"$handle","assigned":true,` +
			`"until":"\u0000","patterns":["[^\\x00]*"],"min_length":1,"max_length":63}},{"bytes":"\u0000"},` +
			`{"value":{"field":"Function","variable":"$fn","patterns":["[^\\x00]*"]}},{"bytes":"\u0000test"}]`},
		{"beanstalk", "beanstalk.life.typical", 0, false,
			`[{"bytes":"use "},{"value":{"field":"Tube","variable":"$tube","until":"\r\n"}},{"bytes":"\r\n"}]`},
		{"beanstalk", "beanstalk.life.typical", 3, true, `[{"bytes":"INSERTED "},{"value":{"field":"Job ID",` +
			`"variable":"$job","assigned":true,"until":"\r\n","patterns":["[0-9]+"]}},{"bytes":"\r\n"}]`},
	} {
		c := load(t, test.protocol, test.id)
		parts := c.Steps[test.step].Message
		if test.received {
			parts = c.Steps[test.step].Alternatives[0].Message
		}
		got, err := json.Marshal(parts)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != test.want {
			t.Errorf("%s, step %q:\n got %s\nwant %s", test.id, c.Steps[test.step].Text, got, test.want)
		}
	}
}

// TestNeeds tests that a case says what it needs besides connections.
func TestNeeds(t *testing.T) {
	for id, want := range map[string][]casedata.Need{
		"gearman.packet.big-endian":       nil,
		"gearman.shutdown.now":            {casedata.NewServer},
		"gearman.resource.cost-with-jobs": {casedata.Process},
	} {
		if got := load(t, "gearman", id).Needs; !slices.Equal(got, want) {
			t.Errorf("%s: expected %q, got %q", id, want, got)
		}
	}
}
