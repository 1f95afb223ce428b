package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclass"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// nodeClassPolicy returns the settings that affect EC2NodeClass conditions.
func (s *Service) nodeClassPolicy() nodeclass.Policy {
	return nodeclass.Policy{Reservations: s.ReservedCapacity, DryRuns: s.DryRuns, SharedGPUs: s.Settings.Gates.DRANVIDIAGPU}
}

// handleNodeClassResolved writes the resources that a node class's selectors resolve to, and its
// drift hash. A result for an older generation is dropped; a request for the current one is in
// flight. A result that was read before the last one is dropped too: messages may be delivered late.
func (s *Service) handleNodeClassResolved(ctx context.Context, e event.Envelope, b event.NodeClassResolved) error {
	return s.resolvedMutex.RunLocked(ctx, func(ctx context.Context) error { return s.applyResolved(ctx, e, b) })
}

func (s *Service) applyResolved(ctx context.Context, e event.Envelope, b event.NodeClassResolved) error {
	class, err := s.readNodeClass(ctx, b.Name, b.UID)
	if err != nil {
		return err
	}
	if class == nil {
		delete(s.resolvedAt, b.UID)
		return nil
	}
	if class.Generation != b.Generation {
		return fault.F("resolving EC2NodeClass "+b.Name, fault.Stale, "the result is for generation %d, and the current one is %d", b.Generation, class.Generation)
	}
	read, now := b.Read, s.Now()
	if read.IsZero() {
		read = b.Asked
	}
	if read.After(now) { // Otherwise one clock ahead of the others would stop the results of the others.
		read = now
	}
	if last := s.resolvedAt[b.UID]; read.Before(last) {
		return fault.F("resolving EC2NodeClass "+b.Name, fault.Stale, "the result was read at %s, and one of %s was handled before", read.UTC().Format(time.RFC3339Nano), last.UTC().Format(time.RFC3339Nano))
	}
	if hashed := nodeclass.WithHash(class, b.Hash, b.HashVersion); hashed != nil {
		// The status is written at the version of this update, so that the class is read again.
		if err := s.executor.Execute(ctx, &e, effect.Update{Object: hashed}); err != nil {
			return err
		}
		if class, err = s.readNodeClass(ctx, b.Name, b.UID); class == nil || err != nil {
			return err
		}
	}
	next, err := nodeclass.ApplyResolved(class, b, s.nodeClassPolicy(), now)
	if err != nil {
		return err
	}
	if err := s.updateClassStatus(ctx, e, class, next); err != nil {
		return err
	}
	s.resolvedAt[b.UID] = read
	return nil
}

// handleNodeClassEnsured writes the state of the class's instance profile and the result of dry
// runs.
func (s *Service) handleNodeClassEnsured(ctx context.Context, e event.Envelope, b event.NodeClassEnsured) error {
	class, err := s.readNodeClass(ctx, b.Name, b.UID)
	if class == nil || err != nil {
		return err
	}
	if b.Deleted {
		return s.removeClassFinalizer(ctx, class)
	}
	if role := managedRole(class); role != b.Role {
		return fault.F("ensuring the profile of EC2NodeClass "+b.Name, fault.Stale, "its role is now %q", role)
	}
	if b.Retired && formerProfile(class) != "" {
		// The status is written at the version of this update, so that the class is read again.
		if err := s.executor.Execute(ctx, &e, effect.Update{Object: nodeclass.WithoutProfile(class)}); err != nil {
			return err
		}
		if class, err = s.readNodeClass(ctx, b.Name, b.UID); class == nil || err != nil {
			return err
		}
	}
	return s.updateClassStatus(ctx, e, class, nodeclass.ApplyEnsured(class, b, s.nodeClassPolicy(), s.Now()))
}

// readNodeClass reads a node class from the API server; nil if it does not exist or has another
// UID.
func (s *Service) readNodeClass(ctx context.Context, name, uid string) (*karpenter.EC2NodeClass, error) {
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

func (s *Service) updateClassStatus(ctx context.Context, e event.Envelope, class, next *karpenter.EC2NodeClass) error {
	if equalJSON(class.Status, next.Status) {
		return nil
	}
	return s.executor.Execute(ctx, &e, effect.UpdateStatus{Object: next})
}

// equalJSON compares two values as the API server would store them.
func equalJSON(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true // Most values are equal, and encoding them takes several times as long.
	}
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && string(left) == string(right)
}
