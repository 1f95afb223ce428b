package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// resolve says what the selectors of an EC2NodeClass find (B053).
func (s Service) resolve(ctx context.Context, e event.Envelope, b event.NodeClassChanged) error {
	var spec karpenter.EC2NodeClassSpec
	if err := json.Unmarshal(b.Spec, &spec); err != nil {
		return fault.E("decoding the spec of EC2NodeClass "+b.Name, fault.Poison, err)
	}
	out := event.NodeClassResolved{Name: b.Name, UID: b.UID, Generation: b.Generation, Asked: b.Asked}
	for _, part := range []func(context.Context, karpenter.EC2NodeClassSpec, *event.NodeClassResolved) (*event.Problem, error){
		s.subnets, s.groups, s.images,
	} {
		problem, err := part(ctx, spec, &out)
		if err != nil {
			return fmt.Errorf("resolving EC2NodeClass %s: %w", b.Name, err)
		}
		if problem != nil {
			out.Problems = append(out.Problems, *problem)
		}
	}
	host.Say(ctx, "nodeclass", b.Name, "subnets", len(out.Subnets), "groups", len(out.SecurityGroups),
		"images", len(out.Images), "problems", len(out.Problems))
	return s.publish(ctx, e, out)
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
