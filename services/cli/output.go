package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
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

	mu  sync.Mutex
	err error
}

// Write writes text with escapes. It returns the length of text, or the writer's error.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		_, o.err = io.WriteString(o.w, escapeControls(string(text)))
	}
	if o.err != nil {
		return 0, o.err
	}
	return len(text), nil
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
	if utf8.ValidString(text) && strings.IndexFunc(text, isControl) < 0 {
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

// isControl reports whether a terminal interprets or hides a character.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
