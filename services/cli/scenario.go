package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// planScenario plans a scenario and measures the effort. Its exit code is 0 for every plan, because
// a scenario has no cluster to change.
func planScenario(cmd *cobra.Command, env Env, name, format string) error {
	started := env.Now()
	s, err := readScenario(cmd, name)
	if err != nil {
		return err
	}
	pods := s.Pods()
	setup := env.Now().Sub(started)
	for _, note := range s.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+note)
	}
	shown := startProgress(cmd, "planning %d pods with %d instance types", len(pods), s.Types())
	defer shown.Stop()
	var result planning.Result
	effort := simulate.MeasureEffort(env.Now, func() {
		batch, stock := s.Problem(pods)
		result = solver.SolveWithTypes(batch, stock)
	})
	effort.SetupWallS = setup.Seconds()
	shown.Stop()
	outcome := s.Outcome(pods, result)
	outcome.Planner = "joist " + cmp.Or(env.Build.Version, "development")
	outcome.Summary.Effort = effort
	if format == "json" {
		return printJSON(cmd.OutOrStdout(), outcome)
	}
	return report.PrintScenario(cmd.OutOrStdout(), outcome)
}

// readScenario reads a scenario from a file, or from stdin with paths relative to the current
// directory.
func readScenario(cmd *cobra.Command, name string) (scenario.Scenario, error) {
	found, err := openScenario(cmd, name)
	if problem, ok := errors.AsType[*fault.Error](err); ok && fault.FindHint(err) == "" {
		return found, problem.WithHint("give a scenario in JSON; -f reads manifests, and --snapshot a snapshot of a cluster")
	}
	return found, err
}

func openScenario(cmd *cobra.Command, name string) (scenario.Scenario, error) {
	if name != "-" {
		info, err := os.Stat(name)
		if err == nil && info.IsDir() {
			err = errors.New("is a directory")
		}
		if err != nil {
			return scenario.Scenario{}, fileError(name, err).WithHint("check the path")
		}
		return scenario.Read(folder(filepath.Dir(name)), filepath.Base(name))
	}
	data, err := readSource(cmd.InOrStdin(), name, scenarioMax)
	if err != nil {
		return scenario.Scenario{}, err
	}
	return scenario.Parse(folder("."), "stdin", data)
}

// folder opens paths relative to a folder, and absolute paths.
type folder string

func (f folder) Open(name string) (fs.File, error) {
	if filepath.IsAbs(name) {
		return os.Open(name)
	}
	return os.DirFS(string(f)).Open(name)
}
