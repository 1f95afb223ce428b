// Package offline asks the planner about manifests, without a cluster and
// without an account.
//
// The idea: what a cluster would have found out (subnets, images, an instance
// profile) is supposed, each supposition is said aloud, and then the very same
// planning runs as in production: scheduling.Solve and launchspec.Build.
package offline

import (
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/workload"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Question is what is asked.
type Question struct {
	Objects []cluster.Object
	Region  string
	Cluster string
	Now     time.Time
	// PriceLimit is what all nodes may cost together, in US dollars an hour; nil is no
	// limit.
	PriceLimit *float64
}

// Answer is the plan, and what was supposed in making it.
type Answer struct {
	Batch     scheduling.Batch
	Catalogue catalog.Catalogue
	Built     launchspec.Built
	// Assumptions say what was not known and what was taken instead.
	Assumptions []string
}

// Ask plans.
func Ask(q Question) (Answer, error) {
	cat, err := catalog.Embedded(q.Region)
	if err != nil {
		return Answer{}, err
	}
	cat.Cluster = placeholderFacts(q.Cluster)
	a := Answer{Catalogue: cat}
	a.assume("prices are those of %s; a spot price is the average of its region", cat.AsOf.Format(time.DateOnly))
	q.Objects = a.distinct(q.Objects)
	demand, err := workload.Of(q.Objects)
	if err != nil {
		return Answer{}, err
	}
	a.Assumptions = append(a.Assumptions, demand.Notes...)
	a.collect(q, demand)
	ref, _, err := blob.Encode(scheduling.BatchKind, a.Batch)
	if err != nil {
		return Answer{}, fmt.Errorf("writing the batch: %w", err)
	}
	a.Built, err = launchspec.Build(a.Batch, ref, scheduling.Solve(a.Batch, cat), cat)
	if err != nil {
		return Answer{}, fmt.Errorf("writing the plan: %w", err)
	}
	return a, nil
}

func (a *Answer) assume(format string, args ...any) {
	a.Assumptions = append(a.Assumptions, fmt.Sprintf(format, args...))
}
