package codec_test

import (
	"strings"
	"testing"

	. "jobwire/codec"
)

// conversationTypes returns the types of an imaginary protocol with ordered and unordered replies.
func conversationTypes() []*Type {
	return JoinTypes([]Type{
		{Name: "submit", Req: 1, Does: Submit, Replies: []string{"created"}},
		{Name: "ask", Req: 1, Does: Ask, Replies: []string{"job", "none"}},
		{Name: "sleep", Req: 1, Does: Sleep},
		{Name: "list", Req: 1, Does: Query, Ordered: true, Replies: []string{"text"}},
		{Name: "count", Req: 1, Does: Query, Ordered: true, Replies: []string{"text"}},
	}, []Type{
		{Name: "created", Res: 1, Does: Accept}, {Name: "job", Res: 1, Does: Assign}, {Name: "other job", Res: 1, Does: Assign},
		{Name: "none", Res: 1, Does: NoJob}, {Name: "refused", Res: 1, Does: Refuse}, {Name: "text", Res: 1, Does: Answer},
		{Name: "event", Res: 1, Does: Published, Push: true},
	})
}

// TestConversation checks which request a message of the server answers: "-" is none, and the results are in the order of
// the replies. The messages, see conversationTypes:
//
//   - submit is answered by created or refused; ask by job, other job, none or refused;
//   - list and count are answered by text or refused, in the order of the requests;
//   - sleep has no reply; event is sent without a request; ? is a message that could not be decoded.
func TestConversation(t *testing.T) {
	types := conversationTypes()
	for _, tt := range []struct{ messages, want string }{
		{"submit created", "submit"},
		{"created", "-"},
		{"sleep created", "-"},
		{"ask submit created job", "submit ask"},
		{"ask submit none created", "ask submit"},
		{"ask other_job", "ask"},
		{"submit other_job", "-"},
		{"submit ask refused refused refused", "submit ask -"},
		{"submit list count text text created", "list count submit"},
		{"list submit refused text", "submit list"},
		{"list count ? text", "list count"},
		{"submit ? created", "- submit"},
		{"list event text", "- list"},
		{"ask submit ask submit created job none created", "submit ask ask submit"},
	} {
		var c Conversation[int]
		var got []string
		for i, word := range strings.Fields(tt.messages) {
			if word == "?" { // a reply that could not be decoded
				if r, ok := c.Reply(nil); ok {
					got = append(got, r.Type.Name)
				} else {
					got = append(got, "-")
				}
				continue
			}
			m := Named(types, strings.ReplaceAll(word, "_", " "))
			if m.Req != 0 {
				if r := c.Add(m); r != nil {
					r.Value = i
				}
				continue
			}
			r, ok := c.Reply(m)
			switch {
			case !ok:
				got = append(got, "-")
			case strings.Fields(tt.messages)[r.Value] != r.Type.Name:
				t.Errorf("%s: the value of %s is another request's", tt.messages, r.Type.Name)
			default:
				got = append(got, r.Type.Name)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: answered %s, want %s", tt.messages, got, tt.want)
		}
	}
}

// TestConversationIsBounded checks that unanswered requests do not use memory without limit.
func TestConversationIsBounded(t *testing.T) {
	types := conversationTypes()
	var c Conversation[int]
	ask, none := Named(types, "ask"), Named(types, "none")
	for range 2 * DefaultMaxPending {
		c.Add(ask)
	}
	if n := c.Len(); n != DefaultMaxPending {
		t.Fatalf("%d requests wait, want %d", n, DefaultMaxPending)
	}
	for range DefaultMaxPending {
		if _, ok := c.Reply(none); !ok {
			t.Fatal("a reply answers nothing")
		}
	}
	if n := testing.AllocsPerRun(1000, func() { c.Add(ask); c.Reply(none) }); n > 0 {
		t.Errorf("%g allocations for a request and its reply", n)
	}
}

// TestCheckBehavior checks that contradictory declarations of message types are reported.
func TestCheckBehavior(t *testing.T) {
	reply := Type{Name: "reply", Section: "s", Res: 1, Does: Answer}
	for _, tt := range []struct {
		row  Type
		want string
	}{
		{Type{Req: 1, Does: Ask, Replies: []string{"reply"}}, "no reply assigns a job"},
		{Type{Req: 1, Does: Submit, Replies: []string{"reply"}}, "no reply returns the ID"},
		{Type{Req: 1, Does: Wait, Replies: []string{"reply"}}, "no reply reports the end"},
		{Type{Req: 1, Does: Query, Blocks: Always}, "blocks but has no reply"},
		{Type{Res: 1, Does: Query, Replies: []string{"reply"}}, "is not a request"},
		{Type{Req: 1, Does: Query, Replies: []string{"row"}}, "row is not sent by the server"},
		{Type{Req: 1, Does: Release, Fields: []Field{{Name: "Delay", Kind: Number, Means: Delay}}}, "Delay has no unit"},
		{Type{Req: 1, Does: Query, Replies: []string{"reply"}}, ""},
	} {
		tt.row.Name, tt.row.Section = "row", "s"
		p := Protocol{Name: "p", Types: JoinTypes([]Type{tt.row}, []Type{reply})}
		if err := p.Check(); tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %v, want %q", tt.row, err, tt.want)
		}
	}
}
