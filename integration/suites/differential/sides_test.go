package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/integration/bench/karpenterbaseline"
	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// readSibling reads the instance types that a scenario names.
func readSibling(name string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", name)) }

// ours plans a scenario file with Joist. shuffle may reorder the pods.
func ours(text []byte, shuffle func([]*corev1.Pod)) ([]byte, error) {
	s, err := scenario.Parse(os.DirFS("testdata"), "scenario.json", text)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario for Joist: %w", err)
	}
	pods := s.Pods()
	if shuffle != nil {
		shuffle(pods)
	}
	defer hurry(text)()
	batch, stock := s.Problem(pods)
	return json.Marshal(s.Outcome(pods, solver.SolveWithTypes(batch, stock)))
}

// patience is many times the duration of a plan of so few pods on a busy machine.
const patience = 20 * time.Second

// hurry ends the whole run if a plan takes too long, because a planner in an endless loop
// may use all memory.
func hurry(text []byte) (stop func()) {
	late := time.AfterFunc(patience, func() { panic(fmt.Sprintf("no plan after %s\nscenario: %s", patience, text)) })
	return func() { late.Stop() }
}

// theirs plans a scenario file with upstream Karpenter, with one worker, because several
// break ties nondeterministically.
func theirs(text []byte) ([]byte, error) {
	s, err := karpenterbaseline.Parse(text, readSibling)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario for Karpenter: %w", err)
	}
	result, err := karpenterbaseline.Plan(context.Background(), s, karpenterbaseline.Options{Concurrency: 1})
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// judged is a plan with the validator's findings.
type judged struct {
	*planvalidator.Result
	violations []planvalidator.Violation
}

func judgeIt(s *planvalidator.Scenario, plan []byte) (judged, error) {
	r, err := planvalidator.ParseResult(plan)
	if err != nil {
		return judged{}, err
	}
	return judged{r, planvalidator.CheckPlan(s, r)}, nil
}

func (j judged) placed() int { return j.Pods - len(j.Unscheduled) }
