package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
)

func TestOutputEscapesControls(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain text, tabs and line feeds", "pods\twait\n→ é 🙂", "pods\twait\n→ é 🙂"},
		{"a CSI sequence", "a\x1b[2Jb", `a\u001b[2Jb`},
		{"a one-byte CSI in UTF-8", "a\u009b2Jb", `a\u009b2Jb`},
		{"a CSI byte that is no UTF-8", "a\x9b2Jb", "a\uFFFD2Jb"},
		{"the clipboard by OSC 52", "\x1b]52;c;cm0gLXJm\a", `\u001b]52;c;cm0gLXJm\u0007`},
		{"a carriage return", "fine\rbad", `fine\u000dbad`},
		{"a right-to-left override", "a\u202eb", `a\u202eb`},
		{"a tag beyond the first plane", "a\U000E0001b", `a\udb40\udc01b`},
		{"a line separator", "a\u2028b", `a\u2028b`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var to bytes.Buffer
			n, err := (&output{w: &to}).Write([]byte(tt.text))
			if err != nil || n != len(tt.text) || to.String() != tt.want {
				t.Errorf("wrote %q, %d, %v; want %q", to.String(), n, err, tt.want)
			}
		})
	}
}

// TestHasControl: the shortcut for printable ASCII hides no character.
func TestHasControl(t *testing.T) {
	for r := range unicode.MaxRune + 1 {
		if got := hasControl(string(r)); got != isControl([]rune(string(r))[0]) {
			t.Fatalf("%U is a control character: %v", r, got)
		}
	}
}

// TestOutputKeepsJSON: a JSON parser reads the original text.
func TestOutputKeepsJSON(t *testing.T) {
	const text = "a\u009b2J\u202e\U000E0001\x1b\r\n"
	var to bytes.Buffer
	if err := printJSON(&output{w: &to}, text); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal(to.Bytes(), &got); err != nil || got != text {
		t.Errorf("%s is read as %q, %v", to.String(), got, err)
	}
	if strings.ContainsFunc(strings.TrimSuffix(to.String(), "\n"), isControl) {
		t.Errorf("%q has control characters", to.String())
	}
}

type fullDisk struct{ free int }

func (f *fullDisk) Write(p []byte) (int, error) {
	if f.free -= len(p); f.free < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

// TestFullDisk: every command fails if its output cannot be written.
func TestFullDisk(t *testing.T) {
	for _, args := range [][]string{{"demo"}, {"version"}, {"version", "-o", "json"}, {"plan", "--help"}, {"completion", "bash"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var complaint strings.Builder
			code := Run(t.Context(), Env{Args: args, Stdout: &fullDisk{free: 20}, Stderr: &complaint})
			if code != ExitError || complaint.String() != "joist: writing the output: no space left on device\n" {
				t.Errorf("exit code %d: %s", code, complaint.String())
			}
		})
	}
}

// TestColors: colours are shown on a terminal, and with CLICOLOR_FORCE also in a pipe, but never
// with NO_COLOR; a hostile text has none.
func TestColors(t *testing.T) {
	terminal := func(io.Writer) (int, bool) { return 80, true }
	const plain, colored = "problem \\u001b[31mx\n", "\x1b[31mproblem\x1b[0m \\u001b[31mx\n"
	for _, tt := range []struct {
		name     string
		terminal func(io.Writer) (int, bool)
		environ  []string
		want     string
	}{
		{"a pipe", nil, nil, plain},
		{"a terminal", terminal, nil, colored},
		{"NO_COLOR", terminal, []string{"NO_COLOR=1"}, plain},
		{"an empty NO_COLOR", terminal, []string{"NO_COLOR="}, colored},
		{"CLICOLOR=0", terminal, []string{"CLICOLOR=0"}, plain},
		{"CLICOLOR=1", terminal, []string{"CLICOLOR=1"}, colored},
		{"a dumb terminal", terminal, []string{"TERM=dumb"}, plain},
		{"CLICOLOR_FORCE in a pipe", nil, []string{"CLICOLOR_FORCE=1"}, colored},
		{"CLICOLOR_FORCE=0", nil, []string{"CLICOLOR_FORCE=0"}, plain},
		{"NO_COLOR and CLICOLOR_FORCE", nil, []string{"CLICOLOR_FORCE=1", "NO_COLOR=1"}, plain},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var to bytes.Buffer
			o := Env{Terminal: tt.terminal, Environ: tt.environ}.newOutput(&to)
			if err := printPainted(o, paint(o, red, "problem"), " \x1b[31mx\n"); err != nil || to.String() != tt.want {
				t.Errorf("wrote %q, %v; want %q", to.String(), err, tt.want)
			}
		})
	}
}
