package contest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/tool"
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
	return joistPlanner("joist", path), err
}

// Before returns the planner of another commit of this repository, which it builds in scratch.
func Before(ctx context.Context, commit, scratch string) (Planner, error) {
	repository, err := tool.Git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return Planner{}, err
	}
	source := filepath.Join(scratch, "before")
	if err := tool.UnpackCommit(ctx, repository, commit, source); err != nil {
		return Planner{}, err
	}
	path := filepath.Join(source, "joist")
	return joistPlanner("before", path), build(ctx, filepath.Join(source, "services", "cli"), "./cmd/joist", path, "GOWORK=off")
}

func joistPlanner(name, path string) Planner {
	return Planner{
		Name: name, Deadline: deadlineMargin,
		Command: []string{path, "plan", "--scenario", File, "-o", "json"}, Fleet: []string{path, "consolidate", "--scenario", File, "-o", "json"},
	}
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
	return to, build(ctx, "", from, to)
}

// build compiles a command in a folder, or in the current one, with additional environment variables.
func build(ctx context.Context, dir, from, to string, environ ...string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", to, from)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environ...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building %s: %w", from, err)
	}
	return nil
}
