package dashboards

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
)

// The first command of each alarm's runbook is a joist command with valid flags.
func TestFirstCommandsAreJoistCommands(t *testing.T) {
	for _, w := range board.Alerts {
		words := strings.Fields(w.FirstStep)
		if words[0] != "joist" || len(words) < 2 {
			t.Errorf("%s names the command %q", w.Name, w.FirstStep)
			continue
		}
		var out, complaint bytes.Buffer
		code := cli.Run(t.Context(), cli.Env{
			Args: append(words[1:], "--help"), Stdout: &out, Stderr: &complaint, Now: time.Now,
		})
		// The help of an unknown command is the root's.
		if verb := strings.Join(words[:2], " "); code != cli.ExitNothing || !strings.Contains(out.String(), "\n  "+verb+" ") {
			t.Errorf("%s names the command %q, which joist rejects: exit code %d, %s", w.Name, w.FirstStep, code, complaint.String())
		}
	}
}
