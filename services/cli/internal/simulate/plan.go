package simulate

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// PlanRequest is the input of a plan.
type PlanRequest struct {
	Objects []cluster.Object
	Region  string
	Cluster string
	Now     time.Time
	// PriceLimit is the maximum cost of all nodes, in US dollars per hour; nil is no limit.
	PriceLimit *float64
}

// PlanResult is a plan with its assumptions.
type PlanResult struct {
	Batch     planning.Batch
	Catalogue catalog.Catalogue
	Built     launchspec.Built
	// Assumptions are the assumed values.
	Assumptions []string
}

// Plan plans nodes for the pods of the manifests with the functions that the planner uses.
// It assumes what a cluster would have resolved (subnets, images, an instance profile),
// and lists each assumption.
func Plan(q PlanRequest) (PlanResult, error) {
	cat, err := catalog.EmbeddedCatalogue(q.Region)
	if err != nil {
		return PlanResult{}, err
	}
	cat.Cluster = PlaceholderFacts(q.Cluster)
	a := PlanResult{Catalogue: cat}
	a.assume("prices are from %s; spot prices are regional averages", cat.AsOf.Format(time.DateOnly))
	q.Objects = a.keepLast(q.Objects)
	demand, err := ExpandWorkloads(q.Objects)
	if err != nil {
		return PlanResult{}, err
	}
	a.Assumptions = append(a.Assumptions, demand.Notes...)
	a.buildBatch(q, demand)
	ref, _, err := blob.Encode(planning.BatchKind, a.Batch)
	if err != nil {
		return PlanResult{}, fmt.Errorf("writing the batch: %w", err)
	}
	a.Built, err = launchspec.Build(a.Batch, ref, solver.Solve(a.Batch, cat), cat)
	if err != nil {
		return PlanResult{}, fmt.Errorf("writing the plan: %w", err)
	}
	return a, nil
}

func (a *PlanResult) assume(format string, args ...any) {
	a.Assumptions = append(a.Assumptions, fmt.Sprintf(format, args...))
}

// keepLast keeps the last of duplicate objects, as applying the files in order would.
func (a *PlanResult) keepLast(objects []cluster.Object) []cluster.Object {
	type identity struct {
		kind schema.GroupVersionKind
		key  cluster.Key
	}
	var out []cluster.Object
	index := map[identity]int{}
	for _, object := range objects {
		id := identity{object.GetObjectKind().GroupVersionKind(), cluster.KeyOf(object)}
		i, known := index[id]
		switch {
		case object.GetName() == "": // The API server generates its name.
			out = append(out, object)
		case known:
			a.assume("%s %s is in the files more than once: using the last one", id.kind.Kind, id.key)
			out[i] = object
		default:
			index[id] = len(out)
			out = append(out, object)
		}
	}
	return out
}
