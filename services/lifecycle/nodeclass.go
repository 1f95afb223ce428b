package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclass"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// policy is what the settings decide about node classes.
func (s *Service) policy() nodeclass.Policy {
	return nodeclass.Policy{Reservations: s.ReservedCapacity, DryRuns: s.DryRuns}
}

// resolved writes what the selectors of a node class find, and its drift
// hash. An answer to a spec that has changed meanwhile is dropped: the new
// one is being asked.
func (s *Service) resolved(ctx context.Context, e event.Envelope, b event.NodeClassResolved) error {
	class, err := s.nodeClass(ctx, b.Name, b.UID)
	if class == nil || err != nil {
		return err
	}
	if class.Generation != b.Generation {
		return fault.F("resolving EC2NodeClass "+b.Name, fault.Stale, "generation %d was asked, and it is at %d", b.Generation, class.Generation)
	}
	if hashed := nodeclass.Hashed(class, b.Hash); hashed != nil {
		// The status is written at the version that this makes, so it is read anew.
		if err := s.do.Do(ctx, &e, effect.Update{Object: hashed}); err != nil {
			return err
		}
		if class, err = s.nodeClass(ctx, b.Name, b.UID); class == nil || err != nil {
			return err
		}
	}
	next, err := nodeclass.Resolved(class, b, s.policy(), s.Now())
	if err != nil {
		return err
	}
	return s.writeClass(ctx, e, class, next)
}

// ensured writes how the instance profile of a node class stands, and what dry
// runs said of it.
func (s *Service) ensured(ctx context.Context, e event.Envelope, b event.NodeClassEnsured) error {
	class, err := s.nodeClass(ctx, b.Name, b.UID)
	if class == nil || err != nil {
		return err
	}
	if b.Deleted {
		return s.releaseClass(ctx, class)
	}
	if role := managedRole(class); role != b.Role {
		return fault.F("ensuring the profile of EC2NodeClass "+b.Name, fault.Stale, "its role is %q now", role)
	}
	if b.Retired && formerProfile(class) != "" {
		// The status is written at the version that this makes, so it is read anew.
		if err := s.do.Do(ctx, &e, effect.Update{Object: nodeclass.Forgetful(class)}); err != nil {
			return err
		}
		if class, err = s.nodeClass(ctx, b.Name, b.UID); class == nil || err != nil {
			return err
		}
	}
	return s.writeClass(ctx, e, class, nodeclass.Ensured(class, b, s.policy(), s.Now()))
}

// nodeClass reads a node class live; nil when it is gone or another has its
// name.
func (s *Service) nodeClass(ctx context.Context, name, uid string) (*karpenter.EC2NodeClass, error) {
	class, err := cluster.Get[*karpenter.EC2NodeClass](ctx, s.Client, cluster.NodeClasses, cluster.Key{Name: name})
	if fault.Is(err, fault.Missing) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading EC2NodeClass %s: %w", name, err)
	}
	if string(class.UID) != uid {
		return nil, nil
	}
	return class, nil
}

func (s *Service) writeClass(ctx context.Context, e event.Envelope, class, next *karpenter.EC2NodeClass) error {
	if equalJSON(class.Status, next.Status) {
		return nil
	}
	return s.do.Do(ctx, &e, effect.UpdateStatus{Object: next})
}

// equalJSON compares two values as the API server would store them.
func equalJSON(a, b any) bool {
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && string(left) == string(right)
}
