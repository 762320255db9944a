package screen

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"jobwire/internal/prose"
)

// Frame is what a screen shows, from top to bottom.
type Frame []Panel

// Panel is a part of a screen. Its texts may be foreign: control characters in them are escaped.
type Panel interface {
	// lines returns the lines of the panel, which may be longer than the screen is wide. rows is the number of rows that
	// are left for panels that can be shorter.
	lines(s style, rows int) []string
}

// Tone is the color of a text.
type Tone string

// Tones are parameters of the sequence that sets a color of a terminal.
const (
	Plain Tone = ""
	Good  Tone = "32"
	Fair  Tone = "33"
	Bad   Tone = "31"
	Dim   Tone = "2"
	Bold  Tone = "1"

	Graphic Tone = "36" // of sparklines
)

// Title is the first line: what runs, and on what.
type Title struct{ Name, About string }

// Bar shows how much is done. Texts follow the bar, and the last ones are left out if the screen is narrow.
type Bar struct {
	Done  float64 // from 0 to 1
	Texts []string
}

// Graphs are sparklines below each other.
type Graphs []Graph

// Graph is a sparkline. It shows the latest values, as many as the screen has room for, between 0 and the highest of
// them.
type Graph struct {
	Label  string
	Values []float64 // 0 or less: not known
	Text   string    // the latest value
}

// Table has cells in columns. All columns but the first are aligned to the right; the last ones are left out if the
// screen is narrow.
type Table struct {
	Head []string
	Rows [][]string
}

// Counters are numbers with their names, in as many lines as they need.
type Counters []Counter

// Counter is a number, or another short text, with its name.
type Counter struct {
	Name, Value string
	Tone        Tone // of the value
}

// List shows the latest of a list of lines, in as many rows as are left on the screen.
type List struct {
	Title string
	First bool   // show the first items, in place of the latest
	Items []Item // the latest is the last
	Total int    // number of all items, of which Items has the latest
	Rows  int    // maximum number of rows
}

// Item is a line of a list, with a word that is colored.
type Item struct {
	Word string
	Tone Tone
	Text string
}

// Note is a line of explanation.
type Note string

// style is how a screen is drawn.
type style struct {
	Options
	width int
}

// tone returns the text in a color.
func (s style) tone(t Tone, text string) string {
	if !s.Colors || t == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(t) + "m" + text + "\x1b[m"
}

// symbols are the characters that a screen consists of, besides text.
type symbols struct {
	done, left, ellipsis string
	levels               []string // of a sparkline, from the lowest to the highest
}

var (
	unicodeSymbols = symbols{"━", "─", "…", strings.Split("▁▂▃▄▅▆▇█", "")}
	asciiSymbols   = symbols{"#", "-", "...", strings.Split("_.-~=+*#", "")}
)

func (s style) symbols() *symbols {
	if s.ASCII {
		return &asciiSymbols
	}
	return &unicodeSymbols
}

// indent precedes every line except the title.
const indent = "  "

// gap separates the parts of a line.
const gap = "   "

func (t Title) lines(s style, _ int) []string {
	line := s.tone(Bold, prose.Printable(t.Name))
	if t.About != "" {
		line += gap + prose.Printable(t.About)
	}
	return []string{line}
}

// Least and greatest width of a bar.
const (
	minBar = 10
	maxBar = 40
)

func (b Bar) lines(s style, _ int) []string {
	text := ""
	for _, t := range b.Texts {
		if t = prose.Printable(t); t == "" {
			continue
		}
		if ansi.StringWidth(indent+text+gap+t)+minBar > s.width {
			break
		}
		text += gap + t
	}
	width := min(max(s.width-ansi.StringWidth(indent+text), 0), maxBar)
	full := min(max(int(b.Done*float64(width)), 0), width)
	y := s.symbols()
	return []string{indent + s.tone(Good, strings.Repeat(y.done, full)) + s.tone(Dim, strings.Repeat(y.left, width-full)) +
		text}
}

func (g Graphs) lines(s style, _ int) (all []string) {
	label, text := 0, 0
	for _, graph := range g {
		label = max(label, ansi.StringWidth(prose.Printable(graph.Label)))
		text = max(text, ansi.StringWidth(prose.Printable(graph.Text)))
	}
	width := max(0, s.width-len(indent)-label-2*len(gap)-text)
	for _, graph := range g {
		all = append(all, indent+s.tone(Dim, pad(prose.Printable(graph.Label), label, false))+gap+
			pad(prose.Printable(graph.Text), text, true)+gap+
			s.tone(Graphic, spark(graph.Values, width, s.symbols().levels)))
	}
	return all
}

// spark draws the last values as bars of one character each.
func spark(values []float64, width int, levels []string) string {
	values = values[max(0, len(values)-width):]
	highest := 0.0
	for _, v := range values {
		highest = max(highest, v)
	}
	var b strings.Builder
	for _, v := range values {
		if !(v > 0) {
			b.WriteByte(' ')
			continue
		}
		b.WriteString(levels[min(int(math.Ceil(v/highest*float64(len(levels))))-1, len(levels)-1)])
	}
	return b.String()
}

// pad adds spaces to a text, before it if right is set, up to a width.
func pad(text string, width int, right bool) string {
	space := strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	if right {
		return space + text
	}
	return text + space
}

func (t Table) lines(s style, _ int) []string {
	rows := append([][]string{t.Head}, t.Rows...)
	lines := make([]string, len(rows))
	width := len(indent)
	for column := range t.Head {
		widest := 0
		for _, row := range rows {
			widest = max(widest, ansi.StringWidth(prose.Printable(row[column])))
		}
		if column > 0 {
			widest += len(gap)
		}
		if width += widest; width > s.width && column > 0 {
			break
		}
		for i, row := range rows {
			cell := pad(prose.Printable(row[column]), widest, column > 0)
			if i == 0 || column == 0 {
				cell = s.tone(Dim, cell)
			}
			lines[i] += cell
		}
	}
	for i := range lines {
		lines[i] = indent + lines[i]
	}
	return lines
}

func (c Counters) lines(s style, _ int) (all []string) {
	line := ""
	for _, counter := range c {
		part := s.tone(Dim, prose.Printable(counter.Name)) + " " + s.tone(counter.Tone, prose.Printable(counter.Value))
		switch {
		case line == "":
			line = indent + part
		case ansi.StringWidth(line+gap+part) > s.width:
			all = append(all, line)
			line = indent + part
		default:
			line += gap + part
		}
	}
	if line != "" {
		all = append(all, line)
	}
	return all
}

func (l List) lines(s style, rows int) (all []string) {
	rows = min(l.Rows, rows-1, len(l.Items))
	if rows <= 0 {
		return nil
	}
	title := prose.Printable(l.Title)
	which, items, word := "latest", l.Items[len(l.Items)-rows:], 0
	if l.First {
		which, items = "first", l.Items[:rows]
	}
	if rows < l.Total {
		title += fmt.Sprintf(" (the %s %d of %s)", which, rows, prose.Grouped(int64(l.Total)))
	}
	all = append(all, indent+s.tone(Dim, title))
	for _, item := range items {
		word = max(word, ansi.StringWidth(prose.Printable(item.Word)))
	}
	for _, item := range items {
		all = append(all, indent+indent+s.tone(item.Tone, pad(prose.Printable(item.Word), word, false))+indent+
			prose.Printable(item.Text))
	}
	return all
}

func (n Note) lines(s style, _ int) []string {
	return []string{indent + s.tone(Dim, prose.Printable(string(n)))}
}

// draw returns the lines of a frame, which fit a screen of this size.
func (f Frame) draw(o Options, width, height int) []string {
	s := style{o, width}
	var all, list []string
	at := -1 // where the list is inserted
	for _, p := range f {
		if _, ok := p.(List); !ok {
			all = append(all, p.lines(s, 0)...)
			continue
		}
		at = len(all)
	}
	for _, p := range f {
		if l, ok := p.(List); ok {
			list = append(list, l.lines(s, height-len(all)-len(list))...)
		}
	}
	if at >= 0 {
		all = append(all[:at:at], append(list, all[at:]...)...)
	}
	all = all[:min(len(all), max(height, 0))]
	for i, line := range all {
		all[i] = ansi.Truncate(line, width, s.symbols().ellipsis)
	}
	return all
}

// Left returns a text about the time that is left if a part of the work, from 0 to 1, has taken some time, or "" if
// this is not known.
func Left(elapsed time.Duration, done float64) string {
	if done <= 0 || done >= 1 || elapsed < time.Second {
		return ""
	}
	return Until(time.Duration(float64(elapsed)*(1-done)/done)) + " left"
}

// Seconds returns a time that has passed in whole seconds, such as "1m5s".
func Seconds(d time.Duration) string { return d.Truncate(time.Second).String() }

// Until returns a time that has not yet passed in whole seconds, rounded up.
func Until(d time.Duration) string { return Seconds(d + time.Second - 1) }
