package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/joist-autoscaler/joist/services/catalog/internal/check"
	"github.com/joist-autoscaler/joist/services/catalog/internal/remedy"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// question is one EC2NodeClass that is being resolved.
type question struct {
	class karpenter.EC2NodeClass
	// cluster is how nodes join it, or clusterErr why that could not be read.
	cluster    cloud.ClusterInfo
	clusterErr error
}

// part finds what one condition is about. A problem is the person's to mend who
// wrote the class; an error says that AWS did not tell.
type part struct {
	condition string
	find      func(Service, context.Context, *question, *event.NodeClassResolved) (*event.Problem, error)
}

var parts = []part{
	{karpenter.ConditionTypeSubnetsReady, Service.subnets},
	{karpenter.ConditionTypeSecurityGroupsReady, Service.groups},
	{karpenter.ConditionTypeAMIsReady, Service.images},
	{karpenter.ConditionTypeCapacityReservationsReady, Service.reservations},
	{karpenter.ConditionTypePlacementGroupReady, Service.placementGroup},
	{karpenter.ConditionTypeValidationSucceeded, Service.validate},
}

// resolve says what the selectors of an EC2NodeClass find. What one part
// could not read spoils no other: the rest is said, and the error is returned as
// well, so that it is seen, counted and tried again.
func (s Service) resolve(ctx context.Context, e event.Envelope, b event.NodeClassChanged) error {
	q := &question{class: karpenter.EC2NodeClass{}}
	q.class.Name = b.Name
	if err := json.Unmarshal(b.Spec, &q.class.Spec); err != nil {
		return fault.E("decoding the spec of EC2NodeClass "+b.Name, fault.Poison, err)
	}
	q.cluster, q.clusterErr = s.describe(ctx)
	out := event.NodeClassResolved{Name: b.Name, UID: b.UID, Generation: b.Generation, Asked: b.Asked}
	unread := s.look(ctx, q, &out)
	if q.clusterErr == nil {
		// A class that cannot be hashed has a problem that says so.
		out.Hash, _ = q.class.Hash(q.cluster.CABundle)
	}
	host.Say(ctx, "nodeclass", b.Name, "subnets", len(out.Subnets), "groups", len(out.SecurityGroups),
		"images", len(out.Images), "reservations", len(out.Reservations), "problems", remedy.Lines(out.Problems))
	if err := s.publish(ctx, e, out); err != nil {
		return err
	}
	if unread != nil {
		return fmt.Errorf("resolving EC2NodeClass %s: %w", b.Name, unread)
	}
	return nil
}

// look finds every part, and gives the first error.
func (s Service) look(ctx context.Context, q *question, out *event.NodeClassResolved) error {
	var first error
	for _, p := range parts {
		problem, err := p.find(s, ctx, q, out)
		if err != nil {
			unread := remedy.Unread(p.condition, err)
			problem = &unread
			if first == nil {
				first = err
			}
		}
		if problem != nil {
			out.Problems = append(out.Problems, *problem)
		}
	}
	return first
}

// validate looks at what needs no selector.
func (s Service) validate(_ context.Context, q *question, _ *event.NodeClassResolved) (*event.Problem, error) {
	if q.clusterErr != nil {
		return nil, q.clusterErr
	}
	return check.Spec(q.class, q.cluster), nil
}

// refused turns the two errors that speak of the class itself into a problem:
// an id that does not exist, and a request that EC2 does not understand. Other
// errors stay errors.
func refused(err error, problem event.Problem) (*event.Problem, error) {
	if !fault.Is(err, fault.Missing, fault.Invalid) {
		return nil, err
	}
	problem.Message += " (" + err.Error() + ")"
	return &problem, nil
}
