package triage

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"time"

	"jobwire/codec"
	"jobwire/codec/transcript"
	"jobwire/fuzz/exec"
	"jobwire/fuzz/input"
	"jobwire/fuzz/model"
	"jobwire/fuzz/transcribe"
	"jobwire/internal/prose"
)

// Title returns what is wrong, where, and after which messages of the minimized input, such as "SIGSEGV in _free_job
// after CAN_DO_TIMEOUT with a timeout above 2^64".
func (fd *Finding) Title(p *codec.Protocol) string {
	in := fd.Input
	if n := len(fd.logged()); fd.Inputs > 1 && n > 0 {
		in = fd.logged()[n-1].Input // which of the inputs are needed is not known
	}
	t := titler{p: p, f: fd.Fault, in: cmp.Or(in, &input.Input{}), record: fd.Record}
	return t.title()
}

// logged returns the entries of the log, or nil.
func (fd *Finding) logged() []input.Entry {
	if fd.Log == nil {
		return nil
	}
	return fd.Log.Entries
}

// Title returns the title of a fault that an input caused. The input may be nil.
func Title(p *codec.Protocol, in *input.Input, f *exec.Fault) string {
	t := titler{p: p, f: f, in: cmp.Or(in, &input.Input{})}
	return t.title()
}

func (t *titler) title() string {
	earlier, last := t.messages()
	for {
		text := t.titleWith(earlier, last)
		if len(text) <= maxTitle || len(earlier) <= 1 {
			return text
		}
		earlier = shorter(earlier)
	}
}

// maxTitle is the length in bytes from which on a title does not name earlier messages in full. An input that could not
// be minimized has many messages and unusual values.
const maxTitle = 220

// shorter returns the names of messages without the first description of what is unusual about one of them or, if there
// is none, without the first ordinary message.
func shorter(names []string) []string {
	for i, name := range names {
		what, detail, cut := strings.Cut(name, " with ")
		if cut && (strings.Contains(detail, " bytes") || strings.Contains(detail, "special")) {
			names[i] = what
			return names
		}
	}
	ordinary := slices.IndexFunc(names, func(name string) bool { return !strings.Contains(name, " with ") })
	return slices.Delete(names, max(0, ordinary), max(0, ordinary)+1)
}

func (t *titler) titleWith(earlier []string, last string) string {
	if last != "" && !t.f.Resync {
		if refusal := t.refusal(); refusal != "" {
			return fmt.Sprintf("the server rejects %s (%s)", last, refusal) + after(earlier)
		}
		if wanted, got := t.accepted(); got != "" {
			return fmt.Sprintf("the server does not reject %s (expected %s, got %s)", last, wanted, got) + after(earlier)
		}
	}
	if last != "" {
		earlier = append(slices.Clip(earlier), last)
	}
	if blocked(t.in, t.f) {
		return t.what() + " while another client does not read its replies"
	}
	return t.what() + after(earlier)
}

// accepted returns the names of the messages of which one should have rejected the message of the step of the fault, and
// of the message that the server sent instead. They are "" if the fault is another one.
func (t *titler) accepted() (wanted, got string) {
	required, _, got := t.expected()
	name := firstWord(got)
	sent := t.p.TypeNamed(name)
	if t.f.Oracle != exec.Law || sent == nil || sent.Does == codec.Refuse ||
		sent.Does == codec.NoJob && t.f.Law != notRejected {
		return "", ""
	}
	all := strings.Split(t.noun(required), " or ")
	for _, one := range all {
		if w := t.p.TypeNamed(firstWord(one)); w == nil || w.Does != codec.Refuse {
			return "", ""
		}
	}
	return strings.Join(all, " or "), name
}

// expected returns the parts of the text of a fault: "expected REQUIRED, because REASON; got GOT" about the content of a
// message, or "expected REQUIRED, got GOT".
func (t *titler) expected() (required, reason, got string) {
	wanted, got, content := cutLast(t.f.Text, "; got ")
	if !content {
		wanted, got, _ = cutLast(t.f.Text, ", got ")
	}
	required, reason, _ = strings.Cut(strings.TrimPrefix(withoutDetails(wanted), "expected "), ", because ")
	return required, reason, got
}

// refusal returns the reply with which the server rejects the message of the step of the fault, or "".
func (t *titler) refusal() string {
	f, at := t.f, t.f.Step
	_, got, _ := cutLast(f.Text, ", got ")
	if f.Oracle != exec.Law || f.Got != codec.Refuse.String() || at < 0 || at >= len(t.in.Steps) ||
		t.in.Steps[at].Conn != f.Conn || got == "" {
		return ""
	}
	return withFirst(got)
}

// titler writes the title of one fault.
type titler struct {
	p      *codec.Protocol
	in     *input.Input
	f      *exec.Fault
	record *exec.Record // nil: unknown
}

// signalNames maps signals, as package os/exec writes them, to their names.
var signalNames = map[string]string{"segmentation fault": "SIGSEGV", "aborted": "SIGABRT", "bus error": "SIGBUS",
	"illegal instruction": "SIGILL", "floating point exception": "SIGFPE", "killed": "SIGKILL",
	"trace/breakpoint trap": "SIGTRAP", "terminated": "SIGTERM", "bad system call": "SIGSYS"}

// what returns what is wrong, without the messages that caused it.
func (t *titler) what() string {
	switch f := t.f; f.Oracle {
	case exec.Exit, exec.Signal:
		what := cmp.Or(signalNames[f.Signal], f.Signal, "server crash")
		if len(f.Stack) == 0 && f.Signal == "" {
			what = "the server process ends"
		}
		return what + t.place()
	case exec.Sanitizer, exec.LeakReport, exec.Undefined:
		return t.kind() + t.place()
	case exec.Disclosure:
		if !f.Proved {
			return t.peer() + " receives data that no client sent"
		}
		return t.peer() + " receives data of another client or of the memory of the server"
	case exec.HangConn:
		return "the server stops answering " + t.peer()
	case exec.Framing:
		_, detail, place := strings.Cut(f.Text, ", ") // the text begins with the number of the byte
		if detail, _, _ = strings.Cut(detail, " ["); !place || detail == "" {
			detail = f.Text
		}
		return fmt.Sprintf("%s receives a malformed %s (%s)", t.peer(), t.malformed(), short(detail, maxDetail))
	case exec.Law:
		switch {
		case f.Resync && f.Got != "":
			return "the server executes data as a request"
		case f.Law == model.ChangedData:
			return t.peer() + " receives a job with other data than was submitted"
		}
		return t.reply()
	}
	return oracles[t.f.Oracle].title
}

// malformed returns the type of the malformed message of the server, or "reply" if it is unknown.
func (t *titler) malformed() string {
	for i := 0; t.record != nil && i < len(t.record.Events); i++ {
		e := &t.record.Events[i]
		if e.From != codec.Server || e.Verb != transcript.Raw || e.Conn != t.f.Conn {
			continue
		}
		var f codec.Frame
		_, err := t.p.NewSession(codec.Options{WaiveAll: true}).Decode(codec.Server, e.Raw, &f)
		if err == nil && f.Type != nil {
			return f.Type.Name
		}
	}
	return "reply"
}

// kind returns the kind of error that a sanitizer has reported, such as "heap-use-after-free (READ of size 8)".
func (t *titler) kind() string {
	kind, _, _ := strings.Cut(t.f.Law, ": ")
	if _, rest, ok := strings.Cut(kind, " "); ok { // the first word is the name of the tool
		kind = rest
	}
	if t.f.Oracle == exec.LeakReport || kind == "" {
		return oracles[t.f.Oracle].title
	}
	if m := access.FindString(t.f.Text); m != "" {
		kind += " (" + m + ")"
	}
	return kind
}

var access = regexp.MustCompile(`(READ|WRITE) of size \d+`)

// place returns the function of a crash and its position in the source, such as " in pop at queue.c:20", or "". An
// offset in a program without symbols says nothing to a reader; the stack of the report has it.
func (t *titler) place() string {
	if len(t.f.Stack) == 0 || strings.Contains(t.f.Stack[0], "+0x") {
		return ""
	}
	where := t.f.Stack[0]
	if i := strings.LastIndex(t.f.Law, " at "); i >= 0 && !strings.Contains(t.f.Law[i:], "+0x") {
		where += t.f.Law[i:]
	}
	return " in " + where
}

// peer returns the role of the peer on the connection of the fault, such as "the worker". If the peer has several roles,
// the message of the server, the expected one, or the request says which one is meant.
func (t *titler) peer() string {
	at, conn := t.f.Step, t.f.Conn
	if conn < 0 || conn >= t.in.Conns() {
		return "another client"
	}
	named := func(r codec.Role) string { return "the " + strings.ToLower(t.p.RoleNames(r)) }
	required, _, got := t.expected()
	for _, name := range []string{got, required} {
		if m := t.p.TypeNamed(firstWord(name)); m != nil && isOne(m.Res) {
			return named(m.Res)
		}
	}
	if at >= 0 && at < len(t.in.Steps) && t.in.Steps[at].Conn == conn {
		if m := t.in.Steps[at].Type; m != nil && isOne(m.Req) {
			return named(m.Req)
		}
	}
	return named(transcribe.Actors(t.p, t.in)[conn].Role)
}

// isOne reports whether r is one role.
func isOne(r codec.Role) bool { return bits.OnesCount(uint(r)) == 1 }

// maxDetail is the maximum length of an explanation in a title, in characters.
const maxDetail = 90

// reply returns what is wrong with a reply, or with its absence. It reads the text of the fault, which has the form
// "expected X, got Y" and may contain the reason for the expectation.
func (t *titler) reply() string {
	required, reason, got := t.expected()
	content := strings.Contains(t.f.Text, "; got ")
	wanted, name := t.p.TypeNamed(firstWord(required)), firstWord(got)
	sent := t.p.TypeNamed(name)
	expected := required
	if reason != "" {
		expected += ", because " + reason
	}
	switch {
	case t.f.Law == closedLaw:
		if hasJob(t.record, t.f) {
			return "the server closes the connection of a worker that has a job"
		}
		return "the server closes the connection"
	case got == "" && reason != "":
		return fmt.Sprintf("%s (expected %s)", t.f.Law, short(expected, maxDetail))
	case got == "":
		return cmp.Or(t.f.Law, "wrong reply")
	case strings.HasPrefix(got, "no message"):
		_, why, _ := strings.Cut(got, "no message: ")
		if wanted != nil && wanted.Does == codec.Wake {
			return fmt.Sprintf("%s sleeps and receives no %s although a job waits", t.peer(), wanted.Name)
		}
		return t.peer() + " receives no " + t.noun(required) + although(why)
	case sent == nil:
		return fmt.Sprintf("%s (%s)", t.f.Law, short(t.f.Text, maxDetail))
	case sent.Does == codec.Wake && !content:
		return fmt.Sprintf("%s receives an unexpected %s", t.peer(), name)
	case content && strings.HasPrefix(required, "no "+name):
		return fmt.Sprintf("%s receives %s too early", t.peer(), name)
	case sent.Does == codec.NoJob && !strings.HasPrefix(required, "no ") && (wanted == nil || wanted.Does == codec.Assign):
		return fmt.Sprintf("%s receives %s although a job waits", t.peer(), name)
	case sent.Does == codec.Assign && wanted != nil && wanted.Does == codec.NoJob:
		return fmt.Sprintf("%s receives %s although no job waits", t.peer(), name)
	case content && wanted != nil && wanted.Name != name:
		return fmt.Sprintf("%s receives %s instead of %s", t.peer(), name, t.noun(required))
	case content && t.answers(name) != "":
		return fmt.Sprintf("the reply to %s is wrong (expected %s)", t.answers(name), short(expected, maxExpected))
	case content:
		return fmt.Sprintf("%s receives a wrong %s (expected %s)", t.peer(), name, short(expected, maxExpected))
	case strings.HasPrefix(required, "no message"):
		return fmt.Sprintf("%s receives an unexpected %s", t.peer(), withFirst(got)) + although(reason)
	}
	return fmt.Sprintf("%s receives %s instead of %s", t.peer(), withFirst(got), t.noun(required)) + although(reason)
}

// answers returns the name of the request at the step of the fault, if the reply has no name of its own. Otherwise it
// returns "".
func (t *titler) answers(reply string) string {
	at := t.f.Step
	if at < 0 || at >= len(t.in.Steps) || t.in.Steps[at].Type == nil || t.in.Steps[at].Type.Name+"-reply" != reply {
		return ""
	}
	return t.in.Steps[at].Type.Name
}

// although returns why a reply is wrong, or "".
func although(why string) string {
	if why == "" {
		return ""
	}
	return ", although " + short(why, maxDetail)
}

// maxExpected is the maximum length of the expected content of a reply in a title, with the reason. The report has the
// whole text.
const maxExpected = 120

// firstWord returns the text before the first space.
func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// withFirst returns the name of a received message with its first argument, if that is one short word.
func withFirst(got string) string {
	m := firstArgument.FindString(got)
	if m == "" || len(m) > maxDetail/2 {
		m = firstWord(got)
	}
	return m
}

var firstArgument = regexp.MustCompile(`^\S+ "[^\s"\\]+"`)

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// noun returns expected messages without their arguments.
func (t *titler) noun(wanted string) string {
	all := strings.Split(wanted, " or ")
	for i, one := range all {
		if name, _, _ := strings.Cut(one, " "); t.p.TypeNamed(name) != nil {
			all[i] = name
		}
	}
	return short(strings.Join(all, " or "), maxDetail)
}

// short returns at most n characters of a text, on one line.
func short(s string, n int) string {
	if r := []rune(strings.Join(strings.Fields(s), " ")); len(r) > n {
		return string(r[:n-3]) + "..."
	} else {
		return string(r)
	}
}

// act is a step of an input in words.
type act struct {
	name    string // of the message, or the action
	unusual string // what distinguishes the message from an ordinary one, such as " with a timeout above 2^64"
	query   bool   // the step changes nothing, or is a pause
	setup   bool   // the step says what jobs the peer works on or submits
}

// maxNames is the number of messages that a title names.
const maxNames = 4

// messages returns the messages that lead to the fault, in their order: the last one, which comes last, and those before
// it that change a job. If the last one is unusual, only other unusual ones matter.
func (t *titler) messages() (names []string, last string) {
	n := len(t.in.Steps)
	if at := t.f.Step; at >= 0 && at < n && !t.f.Ends() {
		n = at + 1
	}
	var acts []act
	does := behavior(t.p, t.in)
	for i := range n {
		if a := t.act(&t.in.Steps[i]); a.name != "" {
			switch does[i].does {
			case abandons:
				if slices.Contains(input.Leaves, t.in.Steps[i].Verb) {
					a.name += " of the client"
				}
			case workerLeaves:
				a.name += " of the worker"
			}
			acts = append(acts, a)
		}
	}
	for t.f.Step < 0 && len(acts) > 1 && acts[len(acts)-1].query { // the fault was noticed with it
		acts = acts[:len(acts)-1]
	}
	if len(acts) == 0 {
		return nil, ""
	}
	final := acts[len(acts)-1]
	acts = t.relevant(acts[:len(acts)-1], final.unusual != "")
	for _, a := range acts {
		if text := a.name + a.unusual; len(names) == 0 || names[len(names)-1] != text {
			names = append(names, text)
		}
	}
	if together(t.in, t.f, does) != "" && n < len(t.in.Steps) {
		if a := t.act(&t.in.Steps[n]); a.name != "" {
			final.unusual += ", sent in one write with " + a.name
		}
	}
	return names, final.name + final.unusual
}

// relevant returns those of the steps before the last one that a title names: the unusual ones and, unless onlyUnusual is
// set, also those that change a job, or else a registration.
func (t *titler) relevant(acts []act, onlyUnusual bool) (all []act) {
	for _, setup := range []bool{false, true} {
		for _, a := range acts {
			if a.unusual != "" || !onlyUnusual && !a.query && a.setup == setup {
				all = append(all, a)
			}
		}
		if len(all) > 0 || onlyUnusual {
			break
		}
	}
	for len(all) >= maxNames {
		ordinary := slices.IndexFunc(all, func(a act) bool { return a.unusual == "" })
		all = slices.Delete(all, max(0, ordinary), max(0, ordinary)+1)
	}
	return all
}

// after returns " after A, B and C" for the names of messages, or "".
func after(names []string) string {
	switch n := len(names) - 1; n {
	case -1:
		return ""
	case 0:
		return " after " + names[0]
	default:
		return " after " + strings.Join(names[:n], ", ") + " and " + names[n]
	}
}

// act returns a step in words. The name is "" if the step only opens a connection.
func (t *titler) act(s *input.Step) act {
	switch {
	case slices.Contains(input.Leaves, s.Verb):
		return act{name: "a disconnect"}
	case s.Verb == transcript.Nothing:
		return act{name: s.For.Round(time.Millisecond).String() + " without messages", query: t.f.Oracle != exec.Law}
	case s.Verb == transcript.Send && s.Type != nil:
		query := s.Type.Does == codec.Query || s.Type.Does == codec.Echo
		unusual := t.unusual(s)
		if what := t.timer(s); what != "" && len(unusual) == 0 {
			unusual = []string{what}
		}
		return act{s.Type.Name, with(unusual), query, s.Type.Does == codec.Register || s.Type.Does == codec.Use}
	case s.Verb == transcript.Raw:
		return t.raw(s.Bytes)
	case s.Verb == transcript.Urgent:
		return act{name: "urgent data"}
	}
	return act{}
}

// timer describes the time that a message sets, such as "a timeout of 1", if the input has a pause, in which this time
// may pass. It returns "" for other messages.
func (t *titler) timer(s *input.Step) string {
	if t.in.Waits() == 0 {
		return ""
	}
	for i := range s.Args {
		fd := s.Type.FieldAt(i)
		if fd == nil || fd.Means != codec.TimeLimit && fd.Means != codec.Delay || s.Args[i].Of > 0 {
			continue
		}
		if n, ok := codec.ParseNumber(s.Args[i].Value); ok && n > 0 {
			return fmt.Sprintf("%s of %d", article(label(fd)), n)
		}
	}
	return ""
}

// with joins what is unusual about a message to "", " with A" or " with A and B". A message without an argument
// comes with a text that begins with "without".
func with(all []string) string {
	if len(all) == 0 {
		return ""
	}
	if len(all) > 2 {
		all = all[:2]
	}
	text := strings.Join(all, " and ")
	if strings.HasPrefix(text, "without ") {
		return " " + text
	}
	return " with " + text
}

// raw returns bytes in words: the message type, if the bytes show it, and what is wrong with them.
func (t *titler) raw(b []byte) act {
	var f codec.Frame
	_, err := t.p.NewSession(codec.Options{}).Decode(codec.Peer, b, &f)
	if err == nil && f.Type != nil {
		return act{name: f.Type.Name, unusual: with(t.frameUnusual(&f))}
	}
	e, illegal := err.(*codec.Error)
	if !illegal {
		return act{name: "the beginning of a message"}
	}
	what, detail := "a malformed message", short(e.Detail, maxDetail)
	var whole codec.Frame
	if _, err := t.p.NewSession(codec.Options{WaiveAll: true}).Decode(codec.Peer, b, &whole); err == nil &&
		whole.Type != nil {
		what = "a malformed " + whole.Type.Name
	}
	if e.Field != "" {
		detail = e.Field + ": " + detail
	}
	return act{name: fmt.Sprintf("%s (%s)", what, detail)}
}

// frameUnusual is [titler.unusual] for a decoded message.
func (t *titler) frameUnusual(f *codec.Frame) (all []string) {
	for i := range f.Spans {
		if what := unusualValue(f.Spans[i].Field, f.Value(i)); what != "" {
			all = append(all, what)
		}
	}
	return all
}

// unusual describes the values of a message that ordinary messages do not have. A minimized message has such values
// only if the fault needs them.
func (t *titler) unusual(s *input.Step) (all []string) {
	for i := range s.Args {
		fd, a := s.Type.FieldAt(i), &s.Args[i]
		switch {
		case fd == nil:
			all = append(all, "more arguments than it has")
		case a.Now && !bytes.HasPrefix(a.Value, []byte("-")):
			all = append(all, article(label(fd))+" in the future")
		case a.Of > 0 || a.Now:
		default:
			if what := unusualValue(fd, a.Value); what != "" {
				all = append(all, what)
			}
		}
	}
	m := s.Message()
	_, err := t.p.NewSession(codec.Options{}).Append(nil, codec.Peer, &m)
	if fd := s.Type.FieldAt(len(s.Args)); fd != nil && !fd.Optional && len(s.Type.Repeat) == 0 && err != nil {
		all = append(all, "without its "+label(fd))
	}
	e, illegal := err.(*codec.Error)
	if illegal && e.Rule == t.f.Rule && !slices.ContainsFunc(s.Type.Fields, func(fd codec.Field) bool { return fd.Name == e.Field }) {
		all = nil // the whole message is illegal
	}
	if illegal && len(all) == 0 {
		all = append(all, fmt.Sprintf("an illegal %s (%s)", cmp.Or(strings.ToLower(e.Field), "form"),
			short(e.Detail, maxDetail)))
	}
	return all
}

// label returns the name of a field in the middle of a sentence.
func label(fd *codec.Field) string {
	if fd.Name[1:] == strings.ToUpper(fd.Name[1:]) { // such as TTR
		return fd.Name
	}
	return strings.ToLower(fd.Name[:1]) + fd.Name[1:]
}

// unusualValue describes a value that ordinary messages do not have: a number greater than 1 or below 0, a long or
// empty text, or a text with special characters. It returns "" for other values.
func unusualValue(fd *codec.Field, v []byte) string {
	name := article(label(fd))
	switch fd.Kind {
	case codec.Number, codec.Signed, codec.Uint:
		n, ok := new(big.Int).SetString(string(v), 10)
		if fd.Kind == codec.Uint {
			n, ok = new(big.Int).SetBytes(v), true
		}
		switch {
		case len(v) == 0:
			return article("empty " + label(fd))
		case !ok:
			return name + " that is not a number"
		case n.Sign() < 0:
			return "a negative " + label(fd)
		}
		if n.Cmp(big.NewInt(1)) > 0 {
			return name + " " + boundary(n)
		}
	case codec.Text, codec.Opaque:
		special := func(r rune) bool { return r <= ' ' || r >= 0x7f }
		switch {
		case len(v) > longValue:
			return fmt.Sprintf("%s of %s bytes", name, prose.Grouped(len(v)))
		case bytes.IndexByte(v, 0) >= 0:
			return "a NUL byte in its " + label(fd)
		case bytes.ContainsFunc(v, special):
			return "special characters in its " + label(fd)
		case len(v) == 0 && fd.NonEmpty != "":
			return article("empty " + label(fd))
		}
	}
	return ""
}

// boundary returns a number greater than 1 as a relation to a power of two at which programs fail, such as "above
// 2^64", or as it is.
func boundary(n *big.Int) string {
	for _, bits := range []uint{128, 64, 63, 32, 31, 16} {
		power := new(big.Int).Lsh(big.NewInt(1), bits)
		switch diff := new(big.Int).Sub(n, power); {
		case diff.Sign() == 0:
			return fmt.Sprintf("of 2^%d", bits)
		case diff.Cmp(big.NewInt(-1)) == 0:
			return fmt.Sprintf("of 2^%d - 1", bits)
		case diff.Sign() > 0:
			return fmt.Sprintf("above 2^%d", bits)
		}
	}
	return "of " + n.String()
}

// article returns a noun with "a" or "an".
func article(noun string) string {
	if strings.ContainsRune("aeioAEIO", rune(noun[0])) || strings.HasPrefix(noun, "hour") || strings.HasPrefix(noun, "un") && !strings.HasPrefix(noun, "uni") {
		return "an " + noun
	}
	return "a " + noun
}
