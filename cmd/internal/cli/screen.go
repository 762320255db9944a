package cli

import (
	"cmp"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"jobwire/internal/screen"
)

// StartScreen shows a live display on standard error, if that is a terminal that can show one, and reports whether it
// does. What the command writes to the terminal then appears above it, until the command calls stop. See
// [screen.Start] about frame.
func StartScreen(cmd *cobra.Command, colors bool, frame func() screen.Frame) (stop func(), on bool) {
	stderr, ok := cmd.ErrOrStderr().(*Output)
	if !ok || !IsTerminal(stderr) || os.Getenv("TERM") == "dumb" {
		return func() {}, false
	}
	s := screen.Start(terminal(stderr), screen.Options{Colors: colors, ASCII: !utf8Locale()}, frame)
	outputs := []*Output{stderr}
	if out, ok := cmd.OutOrStdout().(*Output); ok && IsTerminal(out) {
		outputs = append(outputs, out)
	}
	for _, out := range outputs {
		out.To.setScreen(s)
	}
	return func() {
		s.Stop()
		for _, out := range outputs {
			out.To.setScreen(nil)
		}
	}, true
}

// utf8Locale reports whether the terminal can be expected to show all characters.
func utf8Locale() bool {
	locale := strings.ToLower(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	return runtime.GOOS == "windows" || strings.Contains(locale, "utf-8") || strings.Contains(locale, "utf8")
}
