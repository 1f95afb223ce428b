package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
)

// TestProgress: nothing within a second and nothing in a file; then on a terminal one line that is replaced, shortened
// to its width, and gone before other text, and a single line on a dumb one.
func TestProgress(t *testing.T) {
	terminal := func(io.Writer) (int, bool) { return 20, true }
	for _, tt := range []struct {
		name     string
		terminal func(io.Writer) (int, bool)
		environ  []string
		takes    time.Duration
		want     string
	}{
		{"fast", nil, nil, 900 * time.Millisecond, "done\n"},
		{"fast on a terminal", terminal, nil, 900 * time.Millisecond, "done\n"},
		{"slow", nil, nil, 7 * time.Second, "done\n"},
		{"slow on a terminal", terminal, nil, 1400 * time.Millisecond, "planning (1 s)\r\x1b[Kplanning 7 pods (1…\r\x1b[Kdone\n"},
		{"slow on a dumb terminal", terminal, []string{"TERM=dumb"}, 1400 * time.Millisecond, "planning (1 s)\ndone\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var to bytes.Buffer
				cmd := &cobra.Command{}
				cmd.SetErr(Env{Terminal: tt.terminal, Environ: tt.environ}.newOutput(&to))
				p := startProgress(cmd, "planning")
				time.Sleep(min(tt.takes, 1100*time.Millisecond))
				p.Update("planning %d pods", 7)
				time.Sleep(tt.takes - min(tt.takes, 1100*time.Millisecond))
				p.Stop()
				p.Stop()
				_, _ = io.WriteString(cmd.ErrOrStderr(), "done\n")
				// Stopping erases the line, so the next text does not erase it again.
				if got := strings.ReplaceAll(to.String(), clearLine+clearLine, clearLine); got != tt.want {
					t.Errorf("got  %q\nwant %q", got, tt.want)
				}
			})
		})
	}
}
