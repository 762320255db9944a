// Command recording writes the picture in README.md: an SVG image of a terminal in which a command runs. The output appears line
// by line, unless the reader prefers no animation. "make recording" calls it, with jobwire in PATH.
package main

import (
	"bytes"
	"fmt"
	"html"
	"log"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

const file = "docs/images/recording.svg"

// The command, as lines of the picture. beanstalkd 1.12 must be installed.
var typed = []string{
	`$ jobwire conform beanstalk --run 'beanstalk.kick.*' \`,
	`    --exec 'beanstalkd -l 127.0.0.1 -p {port}'`,
}

func main() {
	command := strings.TrimPrefix(strings.Join(typed, "\n"), "$ ") + " --color always"
	cmd := exec.Command("sh", "-c", command)
	var out bytes.Buffer
	cmd.Stdout = &out // progress and warnings go to the terminal of the user
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
		log.Fatalf("expected that a case fails: %v", err)
	}
	svg := draw(typed, strings.Split(strings.Trim(out.String(), "\n"), "\n"))
	if err := os.WriteFile(file, []byte(svg), 0o666); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d bytes\n", file, len(svg))
}

// Sizes in pixels, and times in seconds.
const (
	letter, row  = 8, 18
	margin, bar  = 16, 34
	begin, delay = 0.8, 0.06
	columns      = 86 // longer lines are folded
)

// fold divides lines that are too long. Lines with escape sequences keep their length.
func fold(lines []string) (all []string) {
	for _, line := range lines {
		for len(line) > columns && !strings.Contains(line, "\x1b") {
			all, line = append(all, line[:columns]), line[columns:]
		}
		all = append(all, line)
	}
	return all
}

// draw returns the picture of a terminal.
func draw(typed, output []string) string {
	lines := append(append([]string{}, typed...), fold(output)...)
	width, height := 2*margin+letter*columns, bar+row*len(lines)+margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img" aria-labelledby="title">
<title id="title">A terminal: jobwire tests beanstalkd, and reports a case that fails</title>
<style>
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #e4e9ee; white-space: pre; }
.b { font-weight: 700; } .f { fill: #9aa5b0; } .r { fill: #ff7b76; } .g { fill: #4cc264; } .y { fill: #dba333; } .u { fill: #79b0ff; } .m { fill: #c792ea; } .c { fill: #4fc7c7; }
@media (prefers-reduced-motion: no-preference) { .late { animation: show 0.01s both; } @keyframes show { from { opacity: 0; } } }
</style>
<rect width="%[1]d" height="%[2]d" rx="8" fill="#0e1216" stroke="#303841"/>
<circle cx="20" cy="17" r="5.5" fill="#ff6b66"/><circle cx="38" cy="17" r="5.5" fill="#dba333"/><circle cx="56" cy="17" r="5.5" fill="#4cc264"/>
`, width, height)
	style := ""
	for i, line := range lines {
		late := ""
		if k := i - len(typed); k >= 0 {
			late = fmt.Sprintf(` class="late" style="animation-delay: %.2fs"`, begin+delay*float64(k))
		} else {
			line = "\x1b[1m" + line + "\x1b[0m"
		}
		var text string
		if text, style = spans(line, style); text != "" {
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\"%s>%s</text>\n", margin, bar+row*i+13, late, text)
		}
	}
	return b.String() + "</svg>\n"
}

var escape = regexp.MustCompile("\x1b\\[([0-9;]*)m")

// styles are the classes of the parameters of escape sequences.
var styles = map[string]string{"1": "b", "2": "f", "31": "r", "32": "g", "33": "y", "34": "u", "35": "m", "36": "c"}

// spans returns a line as parts of a text element. style has the classes at the beginning of the line; spans also returns those
// at its end.
func spans(line, style string) (text, after string) {
	var b strings.Builder
	write := func(part string) {
		switch {
		case part == "":
		case style == "":
			b.WriteString(html.EscapeString(part))
		default:
			fmt.Fprintf(&b, `<tspan class="%s">%s</tspan>`, style, html.EscapeString(part))
		}
	}
	at := 0
	for _, m := range escape.FindAllStringSubmatchIndex(line, -1) {
		write(line[at:m[0]])
		at = m[1]
		for parameter := range strings.SplitSeq(line[m[2]:m[3]], ";") {
			class := styles[parameter]
			if class == "" {
				style = ""
			} else {
				style = strings.TrimSpace(style + " " + class)
			}
		}
	}
	write(line[at:])
	return b.String(), style
}
