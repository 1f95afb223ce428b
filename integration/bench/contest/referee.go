package contest

import (
	"fmt"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// Validator validates with shared/planning/planvalidator. It caches the last scenario,
// because the runs of all planners on one scenario follow each other.
type Validator struct {
	path     string
	scenario *planvalidator.Scenario
}

func (r *Validator) read(s Sample) (*planvalidator.Scenario, error) {
	if r.path != s.Path {
		scenario, err := planvalidator.ReadScenario(s.Path)
		if err != nil {
			return nil, err
		}
		r.path, r.scenario = s.Path, scenario
	}
	return r.scenario, nil
}

// CheckPlan implements PlanValidator.
func (r *Validator) CheckPlan(s Sample, plan []byte) ([]string, error) {
	scenario, err := r.read(s)
	if err != nil {
		return nil, err
	}
	result, err := planvalidator.ParseResult(plan)
	if err != nil {
		return nil, fmt.Errorf("checking the plan for %s: %w", s.Name, err)
	}
	return words(planvalidator.CheckPlan(scenario, result)), nil
}

func words(violations []planvalidator.Violation) (out []string) {
	for _, v := range violations {
		out = append(out, v.Error())
	}
	return out
}

// Bound implements PlanValidator.
func (r *Validator) Bound(s Sample) (float64, error) {
	scenario, err := r.read(s)
	if err != nil {
		return 0, err
	}
	return planvalidator.LowerBound(scenario)
}

// CheckConsolidation implements ConsolidationValidator.
func (r *Validator) CheckConsolidation(s Sample, result []byte) ([]string, error) {
	scenario, err := r.read(s)
	if err != nil {
		return nil, err
	}
	consolidation, err := planvalidator.ParseConsolidation(result)
	if err != nil {
		return nil, fmt.Errorf("checking the consolidation of %s: %w", s.Name, err)
	}
	return words(planvalidator.CheckConsolidation(scenario, consolidation)), nil
}

// RepackBound implements ConsolidationValidator.
func (r *Validator) RepackBound(s Sample) (float64, error) {
	scenario, err := r.read(s)
	if err != nil {
		return 0, err
	}
	return planvalidator.RepackBound(scenario)
}
