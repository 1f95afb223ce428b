package dashboards

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
)

// The command that an alarm says to run first is one that joist has, with these flags.
func TestFirstCommandsAreJoists(t *testing.T) {
	for _, w := range board.Alerts {
		words := strings.Fields(w.FirstStep)
		if words[0] != "joist" || len(words) < 2 {
			t.Errorf("%s says to run %q", w.Name, w.FirstStep)
			continue
		}
		var out, complaint bytes.Buffer
		code := cli.Run(t.Context(), cli.Env{
			Args: append(words[1:], "--help"), Stdout: &out, Stderr: &complaint, Now: time.Now,
		})
		// Help of a verb that is none is the root's own.
		if verb := strings.Join(words[:2], " "); code != cli.ExitNothing || !strings.Contains(out.String(), "\n  "+verb+" ") {
			t.Errorf("%s says to run %q, which joist does not know: exit code %d, %s", w.Name, w.FirstStep, code, complaint.String())
		}
	}
}
