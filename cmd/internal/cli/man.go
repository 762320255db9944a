package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"jobwire/internal/version"
)

// NewMan returns the hidden command "man", which writes the man pages of all commands to a folder for a release.
func NewMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a man page for each command",
		Hidden: true, // "make dist" runs it
		Args:   cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			date, err := sourceDate()
			if err != nil {
				return Usage(err)
			}
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return err
			}
			return WriteManPages(c.Root(), args[0], date)
		},
	}
}

// sourceDate returns the date in SOURCE_DATE_EPOCH (reproducible-builds.org) as YYYY-MM-DD, or "" if it is not set.
func sourceDate() (string, error) {
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		return "", nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return "", fmt.Errorf("SOURCE_DATE_EPOCH: expected seconds since 1970, got %q", epoch)
	}
	return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
}

// WriteManPages writes the page of a command and of each of its subcommands to dir.
func WriteManPages(cmd *cobra.Command, dir, date string) error {
	if err := os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd, date)), 0o666); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			if err := WriteManPages(c, dir, date); err != nil {
				return err
			}
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the man page of a command in the macros of man(7). It has the texts of --help. The package doc of
// cobra is not used: it treats these texts as Markdown, and joins the rows of their lists.
func manPage(cmd *cobra.Command, date string) string {
	cmd.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 %q %q %q\n", strings.ToUpper(manName(cmd)), date, "jobwire "+version.Get().Version,
		"jobwire manual")
	// no hyphens within names of flags, no justified lines, one space after a sentence
	b.WriteString(".nh\n.ad l\n.ss 12 0\n")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	b.WriteString(".SH SYNOPSIS\n")
	var forms []string
	if cmd.Runnable() && cmd.HasParent() {
		forms = append(forms, roff(cmd.UseLine()))
	}
	if cmd.HasAvailableSubCommands() {
		forms = append(forms, roff(cmd.CommandPath()+" COMMAND [flags]"))
	}
	b.WriteString(strings.Join(forms, "\n.br\n") + "\n")
	if cmd.Long != "" {
		b.WriteString(".SH DESCRIPTION\n")
		manText(&b, cmd.Long)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				manItem(&b, c.Name(), c.Short)
			}
		}
	}
	b.WriteString(".SH OPTIONS\n")
	for _, l := range flagLists(cmd) {
		fmt.Fprintf(&b, ".SS %s\n", roff(l.title))
		for line := range strings.Lines(l.flags.FlagUsages()) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), "   ")
			manItem(&b, name, strings.TrimSpace(text))
		}
	}
	if cmd.HasExample() {
		b.WriteString(".SH EXAMPLES\n.nf\n.in 3n\n") // examples have up to 77 characters
		for line := range strings.Lines(cmd.Example) {
			b.WriteString(roff(strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "  ")) + "\n")
		}
		b.WriteString(".in\n.fi\n")
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, manName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			also = append(also, manName(c))
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, name := range also {
		comma := ","
		if i == len(also)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(name), comma)
	}
	return b.String()
}

// listRow matches a row of a list in a help text: a term, two or more spaces, a description.
var listRow = regexp.MustCompile(`^  (\S.*\S|\S)  +(\S.*)$`)

// manText writes a help text. Its paragraphs are filled. Rows of lists become tagged paragraphs, together with the
// lines that continue them. All other lines that begin with a space or a tab stay as they are.
func manText(b *strings.Builder, text string) {
	const (
		paragraph = iota // in a paragraph
		row              // in a row of a list
		raw              // in lines that stay as they are
	)
	column := 0 // of the description in the row
	state := paragraph
	enter := func(s int) {
		switch {
		case s == state:
			return
		case state == raw:
			b.WriteString(".fi\n")
		case state == row:
			b.WriteString(".PD\n")
		}
		switch s {
		case row:
			b.WriteString(".PD 0\n") // no empty lines between the rows
		case raw:
			b.WriteString(".PP\n.nf\n")
		}
		state = s
	}
	empty := false // the line before was empty
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		m := listRow.FindStringSubmatchIndex(line)
		switch {
		case line == "":
		case indent == 0:
			if empty || state != paragraph {
				enter(paragraph)
				b.WriteString(".PP\n")
			}
			b.WriteString(roff(line) + "\n")
		case state == row && indent >= column:
			if strings.HasPrefix(line[indent:], "- ") {
				b.WriteString(".br\n")
			}
			b.WriteString(roff(line[indent:]) + "\n")
		case m != nil:
			enter(row)
			column = m[4]
			manItem(b, line[m[2]:m[3]], line[m[4]:])
		default:
			enter(raw)
			b.WriteString(roff(line) + "\n")
		}
		empty = line == ""
	}
	enter(paragraph)
}

// manItem writes a tagged paragraph.
func manItem(b *strings.Builder, tag, text string) {
	fmt.Fprintf(b, ".TP\n\\fB%s\\fP\n%s\n", roff(tag), roff(text))
}

// roffEscapes replaces the characters that troff interprets or prints in another form.
var roffEscapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// roff escapes a line of text.
func roff(line string) string {
	line = roffEscapes.Replace(line)
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}
