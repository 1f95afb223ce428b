package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/joist-autoscaler/joist/services/catalog/internal/check"
	"github.com/joist-autoscaler/joist/services/catalog/internal/status"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// resolution is the state of resolving one EC2NodeClass.
type resolution struct {
	class karpenter.EC2NodeClass
	// settings are those on which the expressions of the class depend.
	settings planning.Settings
	// cluster has the cluster's facts; clusterErr is set if they could not be read.
	cluster    cloud.ClusterInfo
	clusterErr error
}

// resolver resolves the part of a class that one condition reports. It returns a problem if the
// class is wrong, and an error if AWS could not be read.
type resolver struct {
	condition string
	resolve   func(Service, context.Context, *resolution, *event.NodeClassResolved) (*event.Problem, error)
}

var resolvers = []resolver{
	{karpenter.ConditionTypeSubnetsReady, Service.resolveSubnets},
	{karpenter.ConditionTypeSecurityGroupsReady, Service.resolveSecurityGroups},
	{karpenter.ConditionTypeAMIsReady, Service.resolveImages},
	{karpenter.ConditionTypeCapacityReservationsReady, Service.resolveReservations},
	{karpenter.ConditionTypePlacementGroupReady, Service.resolvePlacementGroup},
	{karpenter.ConditionTypeValidationSucceeded, Service.validateSpec},
}

// resolveNodeClass publishes the resources that an EC2NodeClass selects. If one part
// cannot be read, the other parts are published, and the error is returned as well, so
// that it is logged, counted and retried.
func (s Service) resolveNodeClass(ctx context.Context, e event.Envelope, b event.NodeClassChanged) error {
	r := &resolution{settings: planning.Settings{ReservedENIs: b.ReservedENIs, Gates: planning.Gates{NodeClassCEL: b.Expressions}}}
	r.class.Name = b.Name
	if err := json.Unmarshal(b.Spec, &r.class.Spec); err != nil {
		return fault.E("decoding the spec of EC2NodeClass "+b.Name, fault.Poison, err)
	}
	out := event.NodeClassResolved{Name: b.Name, UID: b.UID, Generation: b.Generation, Asked: b.Asked, Read: s.Now().UTC()}
	r.cluster, r.clusterErr = s.describeCluster(ctx)
	unread := s.resolveConditions(ctx, r, &out)
	if r.clusterErr == nil {
		// If the class cannot be hashed, one of the problems reports the cause.
		out.Hash, _ = r.class.Hash(r.cluster.CABundle)
		out.HashVersion = karpenter.EC2NodeClassHashVersion
	}
	host.AddLogFields(ctx, "nodeclass", b.Name, "subnets", len(out.Subnets), "groups", len(out.SecurityGroups),
		"images", len(out.Images), "reservations", len(out.Reservations), "problems", status.FormatProblems(out.Problems))
	if err := s.publishEvent(ctx, e, out); err != nil {
		return err
	}
	if unread != nil {
		return fmt.Errorf("resolving EC2NodeClass %s: %w", b.Name, unread)
	}
	return nil
}

// resolveConditions resolves every part and returns the first error.
func (s Service) resolveConditions(ctx context.Context, r *resolution, out *event.NodeClassResolved) error {
	var first error
	for _, part := range resolvers {
		problem, err := part.resolve(s, ctx, r, out)
		if err != nil {
			unread := status.UnreadCondition(part.condition, err)
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

// validateSpec checks the fields of the spec that need no AWS call.
func (s Service) validateSpec(ctx context.Context, r *resolution, _ *event.NodeClassResolved) (*event.Problem, error) {
	if problem := check.FindKubeletProblem(r.class, r.settings); problem != nil {
		return problem, nil
	}
	if check.HasExpressions(r.class) {
		known, err := s.currentCatalogue(ctx)
		if err != nil {
			return nil, err
		}
		if len(known.Types) == 0 {
			return nil, fault.F("evaluating the expressions of EC2NodeClass "+r.class.Name, fault.Retry, "no catalogue of instance types has been published yet")
		}
		if problem := check.EvaluateExpressions(r.class, r.settings, known.Types); problem != nil {
			return problem, nil
		}
	}
	if r.clusterErr != nil {
		return nil, r.clusterErr
	}
	return check.FindProblem(r.class, r.cluster), nil
}

// classProblem converts the two errors that the class itself causes to a problem: an ID that does
// not exist, and a request that EC2 rejects as invalid. It returns other errors.
func classProblem(err error, problem event.Problem) (*event.Problem, error) {
	if !fault.Is(err, fault.Missing, fault.Invalid) {
		return nil, err
	}
	problem.Message += " (" + err.Error() + ")"
	return &problem, nil
}
