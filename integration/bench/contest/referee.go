package contest

import (
	"fmt"

	"github.com/joist-autoscaler/joist/integration/bench/planvalidator"
)

// Referee judges by integration/bench/planvalidator. It keeps the last scenario, because all
// planners' runs on one come together.
type Referee struct {
	path     string
	scenario *planvalidator.Scenario
}

func (r *Referee) read(s Sample) (*planvalidator.Scenario, error) {
	if r.path != s.Path {
		scenario, err := planvalidator.Read(s.Path)
		if err != nil {
			return nil, err
		}
		r.path, r.scenario = s.Path, scenario
	}
	return r.scenario, nil
}

// Judge implements Judge.
func (r *Referee) Judge(s Sample, plan []byte) ([]string, error) {
	scenario, err := r.read(s)
	if err != nil {
		return nil, err
	}
	result, err := planvalidator.ParseResult(plan)
	if err != nil {
		return nil, fmt.Errorf("judging the plan for %s: %w", s.Name, err)
	}
	return words(planvalidator.Check(scenario, result)), nil
}

func words(violations []planvalidator.Violation) (out []string) {
	for _, v := range violations {
		out = append(out, v.Error())
	}
	return out
}

// Bound implements Judge.
func (r *Referee) Bound(s Sample) (float64, error) {
	scenario, err := r.read(s)
	if err != nil {
		return 0, err
	}
	return planvalidator.Bound(scenario)
}

// JudgeFleet implements FleetJudge.
func (r *Referee) JudgeFleet(s Sample, result []byte) ([]string, error) {
	scenario, err := r.read(s)
	if err != nil {
		return nil, err
	}
	consolidation, err := planvalidator.ParseConsolidation(result)
	if err != nil {
		return nil, fmt.Errorf("judging the consolidation of %s: %w", s.Name, err)
	}
	return words(planvalidator.CheckConsolidation(scenario, consolidation)), nil
}

// RepackBound implements FleetJudge.
func (r *Referee) RepackBound(s Sample) (float64, error) {
	scenario, err := r.read(s)
	if err != nil {
		return 0, err
	}
	return planvalidator.RepackBound(scenario)
}
