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
	"github.com/joist-autoscaler/joist/integration/bench/planvalidator"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// beside reads the machines that scenarios name.
func beside(name string) ([]byte, error) { return os.ReadFile(filepath.Join("testdata", name)) }

// ours plans a scenario file with Joist. Shuffle may reorder the pods before
// they are told.
func ours(text []byte, shuffle func([]*corev1.Pod)) ([]byte, error) {
	s, err := scenario.Parse(os.DirFS("testdata"), "scenario.json", text)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario as Joist does: %w", err)
	}
	pods := s.Pods()
	if shuffle != nil {
		shuffle(pods)
	}
	defer hurry(text)()
	batch, stock := s.Problem(pods)
	return json.Marshal(s.Outcome(pods, solver.SolveWithTypes(batch, stock)))
}

// patience is many times what a plan of so few pods takes on a busy machine.
const patience = 20 * time.Second

// hurry ends the whole run when a plan takes so long that something must hang: a
// planner that does may take the machine's memory with it.
func hurry(text []byte) (stop func()) {
	late := time.AfterFunc(patience, func() { panic(fmt.Sprintf("no plan after %s\nscenario: %s", patience, text)) })
	return func() { late.Stop() }
}

// theirs plans a scenario file with upstream Karpenter, by one worker, because
// more of them race for ties.
func theirs(text []byte) ([]byte, error) {
	s, err := karpenterbaseline.Parse(text, beside)
	if err != nil {
		return nil, fmt.Errorf("reading the scenario as upstream does: %w", err)
	}
	result, err := karpenterbaseline.Plan(context.Background(), s, karpenterbaseline.Options{Concurrency: 1})
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// judged is a plan and what the judge thinks of it.
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
