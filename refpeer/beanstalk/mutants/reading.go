package mutants

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"jobwire/codec"
	"jobwire/refpeer/internal/faults"
	"jobwire/refpeer/internal/line"
)

func reads(how func(*line.Conn) (*codec.Message, error)) func(*program) {
	return edit.Has(func(h *line.Quirks) { h.Read = how })
}

// reading are faults in handling replies and the end of connections.
var reading = []fault{
	{Name: "a-read-is-a-reply", About: "The client expects each read to return exactly one reply.", Condition: "bytewise", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.ReadWhole)},
	{Name: "a-read-is-a-body", About: "The client reads at most twice for a reply.", Condition: "bytewise", Verdict: "failed cleanly", Fragile: true, Edit: reads(faults.Once)},
	{Name: "body-with-the-line", About: "The client expects a body in the same read as its line.", Condition: "header-apart", Verdict: "failed cleanly", Fragile: true, Edit: reads(readBodyWithLine)},
	{Name: "drops-what-follows", About: "The client sends use and put together, and discards bytes that follow a reply in the same segment.", Condition: "together", Verdict: "hung", Fragile: true,
		Edit: both(reads(faults.Alone), func(p *program) { p.Pipelined = true })},
	{Name: "impatient", About: "The client gives up after 100 milliseconds without a reply.", Condition: "delays", Verdict: "failed cleanly", Fragile: true,
		Edit: edit.Has(func(h *line.Quirks) { h.Timeout = 100 * time.Millisecond })},
	{Name: "ids-of-32-bits", About: "The client stores job IDs as integers of 32 bits.", Condition: "long-handles", Verdict: "wrong result", Edit: ids(func(n uint64) string { return fmt.Sprint(uint32(n)) })},
	{Name: "ids-are-signed", About: "The client stores job IDs as signed integers of 64 bits.", Condition: "huge-ids", Verdict: "wrong result", Edit: ids(func(n uint64) string { return fmt.Sprint(min(n, math.MaxInt64)) })},
	{Name: "body-ends-at-nul", About: "The client truncates a body at its first NUL.", Condition: "nul-bytes", Verdict: "wrong result", Edit: bodies(faults.ToNUL)},
	{Name: "body-ends-at-crlf", About: "The client truncates a body at its first CR LF.", Condition: "nul-bytes", Verdict: "wrong result", Edit: bodies(func(b []byte) []byte {
		b, _, _ = bytes.Cut(b, []byte(crlf))
		return b
	})},
	{Name: "body-is-text", About: "The client replaces bytes of a body that are not valid UTF-8.", Condition: "nul-bytes", Verdict: "wrong result", Edit: bodies(func(b []byte) []byte { return bytes.ToValidUTF8(b, []byte("\ufffd")) })},
	{Name: "body-of-4-kibibytes", About: "The client truncates a body at 4 KiB.", Condition: "large", Verdict: "wrong result", Edit: bodies(faults.UpTo(4 << 10))},
	{Name: "empty-is-null", About: "The client reports an empty body as the word \"null\".", Condition: "empty", Verdict: "wrong result", Edit: bodies(faults.Null)},
	{Name: "empty-body-is-no-job", About: "The client reports that it received no job if the body is empty.", Condition: "empty", Verdict: "failed cleanly",
		Edit: edit.Has(func(h *line.Quirks) {
			h.Edit = func(m *codec.Message) error {
				if m.Type.Name == "RESERVED" && len(m.Args[1]) == 0 {
					return errors.New("the reply contains no job")
				}
				return nil
			}
		})},

	{Name: "not-found-is-success", About: "The client treats the reply NOT_FOUND as success.", Verdict: "wrong result", Edit: takes("NOT_FOUND", "FOUND", "0", "")},
	{Name: "timed-out-is-a-job", About: "The client reports an empty job when it receives TIMED_OUT.", Rule: ownJobs, Verdict: "wrong result", Edit: takes("TIMED_OUT", "RESERVED", "0", "")},
	{Name: "timed-out-is-not-a-reply", About: "The client continues to wait after TIMED_OUT.", Verdict: "hung", Edit: ignores("TIMED_OUT")},
	{Name: "deadline-soon-is-a-job", About: "The client reports an empty job when it receives DEADLINE_SOON.", Verdict: "wrong result", Edit: takes("DEADLINE_SOON", "RESERVED", "0", "")},
	{Name: "deadline-soon-is-not-a-reply", About: "The client continues to wait after DEADLINE_SOON.", Verdict: "hung", Edit: ignores("DEADLINE_SOON")},

	{Name: "ignores-errors", About: "The client ignores INTERNAL_ERROR.", Condition: "error-answers", Verdict: "hung", Edit: ignores("INTERNAL_ERROR")},
	{Name: "error-is-a-job", About: "The client treats the reply INTERNAL_ERROR as a job.", Condition: "error-answers", Verdict: "wrong result", Edit: takes("INTERNAL_ERROR", "RESERVED", "0", "")},
	{Name: "error-of-use-ignored", About: "The client sends put although the server has rejected use.", Condition: "error-answers", Verdict: "hung", Edit: takes("INTERNAL_ERROR", "USING", "default")},
	{Name: "error-of-bury-ignored", About: "The client treats INTERNAL_ERROR in reply to bury as success.", Condition: "error-answers", Verdict: "wrong result", Edit: takes("INTERNAL_ERROR", "BURIED")},
	{Name: "error-of-release-ignored", About: "The client treats INTERNAL_ERROR in reply to release as success.", Condition: "error-answers", Verdict: "wrong result", Edit: takes("INTERNAL_ERROR", "RELEASED")},
	{Name: "error-of-kick-ignored", About: "The client treats INTERNAL_ERROR in reply to kick as success.", Condition: "error-answers", Verdict: "wrong result", Edit: takes("INTERNAL_ERROR", "KICKED", "0")},
	{Name: "error-of-peek-is-a-job", About: "The client reports an empty job when the server rejects peek with INTERNAL_ERROR.", Condition: "error-answers", Verdict: "wrong result", Edit: takes("INTERNAL_ERROR", "FOUND", "0", "")},
	{Name: "end-not-noticed", About: "The client keeps waiting after the server has closed the connection.", Condition: "closed-before", Verdict: "hung", Edit: edit.Has(func(h *line.Quirks) { h.IgnoresEOF = true })},
	{Name: "crashes-with-the-connection", About: "The client crashes when the server closes the connection.", Condition: "closed-within", Verdict: "crashed", Edit: edit.Has(func(h *line.Quirks) { h.ExitsOnEOF = true })},
	{Name: "end-is-success", About: "The client reports success when the server closes the connection without replying.", Condition: "closed-before", Verdict: "hung", Edit: edit.Has(func(h *line.Quirks) { h.EOFEndsJob = true })},
	{Name: "never-connects-again", About: "The client keeps using a closed connection.", Condition: "restarts", Verdict: "not recovered", Edit: edit.Has(func(h *line.Quirks) { h.ReusesFailed = true })},
	{Name: "used-tube-not-restored", About: "The client does not send use again after it has connected again.", Condition: "closed-after", Verdict: "hung", Edit: func(p *program) { p.KeepsUsed = true }},
	{Name: "default-ignored-late", About: "The client does not ignore the tube default before its first reserve.", Verdict: "wrong result", Edit: func(p *program) { p.LateIgnore = true }},
	{Name: "watched-tubes-not-restored", About: "The client does not send watch again after it has connected again.", Condition: "closed-before", Verdict: "not recovered", Edit: func(p *program) { p.KeepsWatched = true }},
}

// readBodyWithLine reads a reply whose body must be in the same read as its line.
func readBodyWithLine(c *line.Conn) (*codec.Message, error) {
	for {
		if m, err := c.Decode(); m != nil || err != nil {
			return m, err
		}
		if bytes.HasSuffix(c.In, []byte(crlf)) {
			return nil, fmt.Errorf("%w: expected a body after %q", line.ErrProtocol, c.In)
		}
		if err := c.Fill(); err != nil {
			return nil, err
		}
	}
}

// bodies changes the bodies of jobs that the client receives.
func bodies(change func([]byte) []byte) func(*program) {
	return edit.EditReceived(faults.Last(change), "RESERVED", "FOUND")
}

// ignores discards replies of a type.
func ignores(reply string) func(*program) {
	return reads(func(c *line.Conn) (*codec.Message, error) {
		for {
			if m, err := line.Read(c); err != nil || m.Type.Name != reply {
				return m, err
			}
		}
	})
}

// asFloat returns a job ID as it is after a conversion to a floating-point number.
func asFloat(id uint64) string { return strconv.FormatFloat(float64(id), 'f', 0, 64) }
