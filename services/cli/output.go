package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// output writes text to a terminal, a file or a pipe. It replaces every character that a
// terminal interprets or hides by its JSON escape: control characters except line feed and
// tab, C1 controls such as U+009B, and format characters such as U+202E. Names and reasons
// come from messages that any sender may have written. JSON keeps its meaning, because such
// characters occur only in strings. Invalid UTF-8 becomes U+FFFD. Each Write must contain
// whole characters.
//
// It keeps the first error, for callers that ignore the errors of single writes.
type output struct {
	w io.Writer
	// columns is the width of the terminal; 0 for a file or a pipe.
	columns int
	// isWide reports whether -o wide was given.
	isWide bool
	// isTerminal reports a terminal, colors whether colours are shown, and rewrites whether a line can be replaced.
	isTerminal, colors, rewrites bool
	// after is Env.After.
	after func(d time.Duration) <-chan time.Time
	// closed ends all output. A write that is blocked does not delay it.
	closed atomic.Bool

	mu  sync.Mutex
	err error
	// status is the line at the cursor that the next text replaces.
	status string
}

// newOutput returns an output with the properties of its terminal. The environment variables
// NO_COLOR, CLICOLOR, CLICOLOR_FORCE, TERM and COLUMNS have their usual meanings.
func (e Env) newOutput(w io.Writer) *output {
	o := &output{w: w, after: e.After}
	if e.Terminal != nil {
		o.columns, o.isTerminal = e.Terminal(w)
	}
	if n, err := strconv.Atoi(e.lookupEnv("COLUMNS")); err == nil && n > 0 && o.isTerminal {
		o.columns = n
	}
	if o.rewrites = o.isTerminal && e.lookupEnv("TERM") != "dumb"; !o.isTerminal {
		o.columns = 0
	}
	force := e.lookupEnv("CLICOLOR_FORCE")
	o.colors = (o.rewrites && e.lookupEnv("CLICOLOR") != "0" || force != "" && force != "0") && e.lookupEnv("NO_COLOR") == ""
	return o
}

// Columns returns the width that a table must fit, or 0 for any width: in a file or a pipe, or with -o wide.
func (o *output) Columns() int {
	if o.isWide {
		return 0
	}
	return o.columns
}

// IsWide reports whether tables have all columns and whole texts.
func (o *output) IsWide() bool { return o.isWide }

// Write writes text with escapes. It returns the length of text, or the writer's error.
func (o *output) Write(text []byte) (int, error) {
	return o.writeText(len(text), escapeControls(string(text)))
}

// writeText writes text as it is, in the place of the status line. It returns n, or the writer's error.
func (o *output) writeText(n int, text string) (int, error) {
	if o.closed.Load() {
		return 0, io.ErrClosedPipe
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.status != "" {
		text, o.status = clearLine+text, ""
	}
	if o.err == nil {
		_, o.err = io.WriteString(o.w, text)
	}
	if o.err != nil {
		return 0, o.err
	}
	return n, nil
}

// clearLine moves a terminal's cursor to the begin of the line and erases the line.
const clearLine = "\r\x1b[K"

// setStatus replaces the status line, which is shortened to the width of the terminal.
func (o *output) setStatus(line string) {
	if line = escapeControls(line); o.columns > 1 {
		line = firstLine(line, o.columns-1)
	}
	if line == "" && o.hasNoStatus() {
		return
	}
	_, _ = o.writeText(0, line) // The error is kept.
	o.mu.Lock()
	o.status = line
	o.mu.Unlock()
}

func (o *output) hasNoStatus() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.status == ""
}

// A color is a colour of a terminal, as the parameters of its SGR sequence.
type color string

// The colours, always in addition to a word with the same meaning.
const (
	red    color = "31"
	yellow color = "33"
)

// paint returns text with escapes, in a colour if w shows colours. Only printPainted may print it.
func paint(w io.Writer, c color, text string) painted {
	text = escapeControls(text)
	if o, ok := w.(*output); ok && o.colors {
		text = "\x1b[" + string(c) + "m" + text + "\x1b[0m"
	}
	return painted(text)
}

// painted is text that a terminal may interpret.
type painted string

// printPainted prints painted text followed by plain text.
func printPainted(w io.Writer, head painted, rest string) error {
	o, ok := w.(*output)
	if !ok {
		_, err := io.WriteString(w, string(head)+escapeControls(rest))
		return err
	}
	_, err := o.writeText(0, string(head)+escapeControls(rest))
	return err
}

// writeError returns the first error of a write, or nil.
func (o *output) writeError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	return fault.E("writing the output", fault.Invalid, o.err)
}

// escapeControls escapes the characters that a terminal interprets or hides.
func escapeControls(text string) string {
	if utf8.ValidString(text) && !hasControl(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch high, low := utf16.EncodeRune(r); {
		case !isControl(r):
			b.WriteRune(r)
		case high != unicode.ReplacementChar:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// hasControl reports whether a text has a character that a terminal interprets or hides. A plan has up to 40 MB of
// printable ASCII, so this looks up no Unicode property of that.
func hasControl(text string) bool {
	for _, r := range text {
		if (r < ' ' || r > '~') && isControl(r) {
			return true
		}
	}
	return false
}

// isControl reports whether a terminal interprets or hides a character.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
