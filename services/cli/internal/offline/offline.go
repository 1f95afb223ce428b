// Package offline asks the planner about manifests, without a cluster and
// without an account.
//
// The idea: what a cluster would have found out (subnets, images, an instance
// profile) is supposed, each supposition is said aloud, and then the very same
// planning runs as in production: scheduling.Solve and launchspec.Build.
package offline

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/workload"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/podspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Question is what is asked.
type Question struct {
	Objects []cluster.Object
	Region  string
	Cluster string
	Now     time.Time
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

// collect makes the batch that the watcher would have made of a cluster with
// these objects.
func (a *Answer) collect(q Question, demand workload.Demand) {
	named := podspec.Named{}
	for _, pod := range slices.Concat(demand.Waiting, bound(demand)) {
		named.Add(pod)
	}
	pending := podspec.Group(demand.Waiting, named, nil)
	s := scheduling.Snapshot{Taken: q.Now.UTC(), Cluster: q.Cluster, UID: "offline"}
	for _, pod := range demand.Daemons {
		s.DaemonSets = append(s.DaemonSets, podspec.Daemon(pod))
	}
	for _, object := range q.Objects {
		switch o := object.(type) {
		case *karpenter.NodePool:
			s.NodePools = append(s.NodePools, *o)
			if o.Static() {
				a.assume("NodePool %s keeps a fixed number of nodes, which are not planned here", o.Name)
			}
		case *karpenter.EC2NodeClass:
			s.NodeClasses = append(s.NodeClasses, *o.DeepCopy())
		case *corev1.Node:
			s.Nodes = append(s.Nodes, nodeOf(o, demand.Bound[o.Name], named))
		}
	}
	a.classes(&s, q.Now)
	a.Batch = scheduling.Batch{Outbox: "offline", Seq: 1, Snapshot: s, Pending: pending}
}

func bound(demand workload.Demand) []*corev1.Pod {
	var out []*corev1.Pod
	for _, pods := range demand.Bound {
		out = append(out, pods...)
	}
	return out
}
