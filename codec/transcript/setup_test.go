package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"jobwire/codec/gearman"
	"jobwire/codec/transcript"
)

const setups = `
@setup barrier modifiers...
@about The server has handled all earlier requests of the connection.
@probe
Client -> Job Server: setup barrier
@way echo
{peer} -> Job Server: ECHO_REQ sync
Job Server -> {peer}: ECHO_RES sync {modifiers}
@way status
{peer} -> Job Server: GET_STATUS none
Job Server -> {peer}: STATUS_RES none 0 0 0 0 {modifiers}

@setup quiet
@about The server sends nothing.
@probe
Client -> Job Server: setup quiet
@way wait
Job Server -> {peer}: nothing for 1ms

@setup submit job function unique="" data="a b" modifiers...
@about The server has a job.
@probe
Client -> Job Server: setup submit $job $fn
@way SUBMIT_JOB
{peer} -> Job Server: SUBMIT_JOB {function} {unique} {data}
Job Server -> {peer}: JOB_CREATED {job} {modifiers}
{peer} -> Job Server: check barrier
`

func steps(s *transcript.Script) string {
	var b strings.Builder
	for i := range s.Steps {
		b.WriteString(s.Steps[i].Setup + "|" + s.Steps[i].Source + "\n")
	}
	return b.String()
}

// TestSetups tests that a line "setup NAME" is replaced by the lines of the setup with its arguments, and that another
// way of the setup can be chosen later.
func TestSetups(t *testing.T) {
	all, err := transcript.ParseSetups(gearman.Protocol, "setup.wire", []byte(setups))
	if err != nil {
		t.Fatal(err)
	}
	src := "@about All.\n@case c\n@for n in 1 2\nClient 2 -> Job Server: setup submit $j $fn data=\"x\"*{n} # comment\nClient 2 -> Job Server: GET_STATUS $j\nClient 2 -> Job Server: setup barrier past WORK_DATA within 3s\n"
	scripts, err := all.Parse(gearman.Protocol, "x.wire", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if len(scripts) != 2 {
		t.Fatalf("%d scripts", len(scripts))
	}
	s := scripts[1]
	want := `submit|Client 2 -> Job Server: SUBMIT_JOB $fn "" "x"*2
submit|Job Server -> Client 2: JOB_CREATED $j
submit|Client 2 -> Job Server: ECHO_REQ sync
submit|Job Server -> Client 2: ECHO_RES sync
|Client 2 -> Job Server: GET_STATUS $j
barrier|Client 2 -> Job Server: ECHO_REQ sync
barrier|Job Server -> Client 2: ECHO_RES sync past WORK_DATA within 3s
`
	if got := steps(s); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join(s.Setups, " "); got != "submit barrier" {
		t.Errorf("setups %q", got)
	}
	other, err := s.With(transcript.Ways{"barrier": 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := steps(other); strings.Contains(got, "ECHO") || strings.Count(got, "STATUS_RES") != 2 || !strings.Contains(got, `"x"*2`) {
		t.Errorf("with the second way\n%s", got)
	}
	if other.Value("about") != "All." || other.Params[0].Label != "2" || other.Steps[0].Line != s.Steps[0].Line {
		t.Errorf("the other script has other metadata: %+v", other)
	}
	probe, err := all.Probe("submit", transcript.Ways{"barrier": 1})
	if err != nil || !strings.Contains(steps(probe), `"a b"`) || !strings.Contains(steps(probe), "STATUS_RES") {
		t.Errorf("probe: %v\n%s", err, steps(probe))
	}
}

// TestSetupArguments tests arguments by position and by name, defaults, and the rest of the line.
func TestSetupArguments(t *testing.T) {
	all, err := transcript.ParseSetups(gearman.Protocol, "setup.wire", []byte(setups))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ args, request, reply string }{
		{`$j f`, `f "" "a b"`, "$j"},
		{`$j f data=*`, `f "" *`, "$j"},
		{`data=$now+5 $j unique="u v" f`, `f "u v" $now+5`, "$j"},
		{`function=f job=$j`, `f "" "a b"`, "$j"},
		{`function=f $j within 3s`, `f "" "a b"`, "$j within 3s"},
		{`$j f data="x=1"*3 past WORK_DATA # data=y`, `f "" "x=1"*3`, "$j past WORK_DATA"},
		{`$j "f=g" unique=a=b`, `"f=g" a=b "a b"`, "$j"},
	}
	for _, test := range tests {
		src := "@case c\nClient -> Job Server: check submit " + test.args + "\n"
		scripts, err := all.Parse(gearman.Protocol, "x.wire", []byte(src))
		if err != nil {
			t.Error(err)
			continue
		}
		want := "|Client -> Job Server: SUBMIT_JOB " + test.request + "\n|Job Server -> Client: JOB_CREATED " + test.reply + "\n|"
		if got := steps(scripts[0]); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", test.args, got, want)
		}
		if got := strings.Join(append(scripts[0].Checks, scripts[0].Setups...), " "); got != "submit barrier" {
			t.Errorf("%s: setups %s", test.args, got)
		}
	}
}

// TestSetupErrors tests that an unknown, incomplete, recursive or too large setup, or one with wrong arguments, is an
// error.
func TestSetupErrors(t *testing.T) {
	chain := []string{"@setup a\n@about A.\n@probe\nClient -> Job Server: setup f\n@way x\nClient -> Job Server: version\n"}
	for _, name := range "bcdef" { // each uses the one before it twenty times
		use := fmt.Sprintf("Client -> Job Server: setup %c\n", name-1)
		chain = append(chain, fmt.Sprintf("@setup %c\n@about A.\n@probe\n%s@way x\n%s", name, use, strings.Repeat(use, 20)))
	}
	tests := []struct{ setups, line, want string }{
		{setups, "Client -> Job Server: setup submitt $j f x", "did you mean submit?"},
		{setups, "Client -> Job Server: setup submit $j", `x.wire:2:1: setup submit: expected job function unique="" data="a b" modifiers..., got no function`},
		{setups, "Client -> Job Server: setup submit $j f data=x data=y", "got data twice"},
		{setups, "Client -> Job Server: setup submit $j f job=$i", "got job twice"},
		{setups, "Client -> Job Server: setup submit $j f dat=x", "got dat=x"},
		{setups, "Client -> Job Server: setup submit $j f data=", "got data="},
		{setups, "Client -> Job Server: setup submit $j f x", "expected JOB_CREATED"},
		{setups, "Client -> Job Server: setup submit $j f within 1s data=x", "expected a modifier"},
		{setups, "Client -> Job Server: setup quiet x", "setup quiet: expected no arguments, got x"},
		{"@setup a b b\n", "", "expected parameters with different names"},
		{"@setup a peer\n", "", "expected parameters with different names"},
		{"@setup a b... c\n", "", "expected parameters with different names"},
		{"@setup a b=\n", "", "expected parameters with different names"},
		{setups, "Job Server -> Client: setup barrier", "expected a line from a client or worker"},
		{setups, "Client -> Job Server: setup barrier past NOPE", "expected a message type"},
		{"@way x\n", "", "expected @setup NAME"},
		{"@setup a\n@about A.\n@way x\nClient -> Job Server: WORK_FAIL x\n", "", "needs @about, @probe"},
		{"@setup a\n@about A.\n@probe\nClient -> Job Server: setup a\n@way x\nClient -> Job Server: setup a\n", "", "uses itself"},
		{"@setup a\n@about A.\n@probe\nClient -> Job Server: setup b\n@way x\nClient -> Job Server: setup b\n@setup b\n@about B.\n", "", "the setup b needs"},
		{strings.Join(chain, ""), "", "at most 4 MiB"},
		{strings.Replace(setups, "JOB_CREATED {job}", "JOB_CREATE {job}", 1), "", "did you mean JOB_CREATED?"},
	}
	for _, test := range tests {
		all, err := transcript.ParseSetups(gearman.Protocol, "setup.wire", []byte(test.setups))
		if err == nil {
			_, err = all.Parse(gearman.Protocol, "x.wire", []byte("@case c\n"+test.line+"\n"))
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.line, err, test.want)
		}
	}
}
