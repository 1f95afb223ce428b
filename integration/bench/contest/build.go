package contest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The planners' names.
const (
	joistPackage     = "github.com/joist-autoscaler/joist/services/cli/cmd/joist"
	karpenterPackage = "github.com/joist-autoscaler/joist/integration/bench/karpenterbaseline/cmd/karpenterbaseline"
)

// deadlineMargin is a planner's time limit for everything but solving: reading the
// scenario, and printing the plan, for which Karpenter sorts each node's types.
const deadlineMargin = 15 * time.Minute

// Joist returns the planner of this repository. If path is empty, it builds the planner
// into scratch.
func Joist(ctx context.Context, path, scratch string) (Planner, error) {
	path, err := built(ctx, path, joistPackage, filepath.Join(scratch, "joist"))
	return Planner{
		Name: "joist", Deadline: deadlineMargin,
		Command: []string{path, "plan", "--scenario", File, "-o", "json"}, Fleet: []string{path, "consolidate", "--scenario", File, "-o", "json"},
	}, err
}

// Karpenter returns upstream's scheduler, which stops solving after limit and keeps the
// pods placed so far, and upstream's consolidation, which stops after fleetLimit. If path
// is empty, it builds the planner into scratch.
func Karpenter(ctx context.Context, path, scratch string, limit, fleetLimit time.Duration) (Planner, error) {
	path, err := built(ctx, path, karpenterPackage, filepath.Join(scratch, "karpenterbaseline"))
	return Planner{
		Name: "karpenter", Deadline: max(limit, fleetLimit) + deadlineMargin,
		Command: []string{path, "-timeout", limit.String(), File}, Fleet: []string{path, "-consolidate", "-timeout", fleetLimit.String(), File},
	}, err
}

func built(ctx context.Context, path, from, to string) (string, error) {
	if path != "" {
		return path, nil
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", to, from)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building %s: %w", from, err)
	}
	return to, nil
}
