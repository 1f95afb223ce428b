package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// profileCheck is how often an instance profile that stands is looked at
// (B197).
const profileCheck = 15 * time.Minute

// resolved writes what the selectors of a node class find (B053). An answer to
// a spec that has changed meanwhile is dropped: the new one is being asked.
func (s *Service) resolved(ctx context.Context, e event.Envelope, b event.NodeClassResolved) error {
	class, err := s.nodeClass(ctx, b.Name, b.UID)
	if class == nil || err != nil {
		return err
	}
	if class.Generation != b.Generation {
		return fault.F("resolving EC2NodeClass "+b.Name, fault.Stale, "generation %d was asked, and it is at %d", b.Generation, class.Generation)
	}
	class = class.DeepCopy()
	class.Status.Subnets = subnets(b.Subnets)
	class.Status.SecurityGroups = groups(b.SecurityGroups)
	if class.Status.AMIs, err = images(b.Images); err != nil {
		return err
	}
	for _, kind := range []string{
		karpenter.ConditionTypeSubnetsReady, karpenter.ConditionTypeSecurityGroupsReady, karpenter.ConditionTypeAMIsReady,
		karpenter.ConditionTypeValidationSucceeded, karpenter.ConditionTypePlacementGroupReady,
	} {
		s.condition(class, kind, b.Problems)
	}
	if class.Spec.InstanceProfile != nil {
		class.Status.InstanceProfile = *class.Spec.InstanceProfile
		s.condition(class, karpenter.ConditionTypeInstanceProfileReady, nil)
	}
	return s.writeClass(ctx, e, class)
}

// ensured writes how the instance profile of a node class stands.
func (s *Service) ensured(ctx context.Context, e event.Envelope, b event.NodeClassEnsured) error {
	class, err := s.nodeClass(ctx, b.Name, b.UID)
	if class == nil || err != nil {
		return err
	}
	if b.Deleted {
		return s.releaseClass(ctx, class)
	}
	if class.Spec.Role != b.Role {
		return fault.F("ensuring the profile of EC2NodeClass "+b.Name, fault.Stale, "its role is %q now", class.Spec.Role)
	}
	class = class.DeepCopy()
	var problems []event.Problem
	if b.Problem != nil {
		problems = append(problems, *b.Problem)
	} else {
		class.Status.InstanceProfile = b.Profile
	}
	s.condition(class, karpenter.ConditionTypeInstanceProfileReady, problems)
	return s.writeClass(ctx, e, class)
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

// condition sets one condition: false with the problem that names it, else true.
func (s *Service) condition(class *karpenter.EC2NodeClass, kind string, problems []event.Problem) {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, ObservedGeneration: class.Generation}
	for _, p := range problems {
		if p.Condition == kind {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, p.Reason, p.Message
			break
		}
	}
	class.Status.Conditions = class.Status.Conditions.With(c, s.Now())
}

func (s *Service) writeClass(ctx context.Context, e event.Envelope, class *karpenter.EC2NodeClass) error {
	depends := slices.DeleteFunc(karpenter.EC2NodeClassReady(true), func(kind string) bool {
		// Reservations are resolved by a later release; without terms there is
		// nothing to wait for.
		return kind == karpenter.ConditionTypeCapacityReservationsReady
	})
	class.Status.Conditions = class.Status.Conditions.WithReady(depends, class.Generation, s.Now())
	before, ok := s.Cache.Get(cluster.NodeClasses, cluster.KeyOf(class))
	if ok && before.GetResourceVersion() == class.ResourceVersion && equalJSON(before.(*karpenter.EC2NodeClass).Status, class.Status) {
		return nil
	}
	return s.do.Do(ctx, &e, effect.UpdateStatus{Object: class})
}

// equalJSON compares two values as the API server would store them.
func equalJSON(a, b any) bool {
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && string(left) == string(right)
}

// nodeClasses keeps the finalizer and the instance profile of each node class.
func (s *Service) nodeClasses(ctx context.Context, claims []*karpenter.NodeClaim) error {
	for _, class := range cluster.Cached[*karpenter.EC2NodeClass](s.Cache, cluster.NodeClasses) {
		if err := s.do.Do(ctx, nil, s.nodeClassEffects(class, claims)...); err != nil {
			return fmt.Errorf("EC2NodeClass %s: %w", class.Name, err)
		}
	}
	return nil
}

func (s *Service) nodeClassEffects(class *karpenter.EC2NodeClass, claims []*karpenter.NodeClaim) []effect.Effect {
	finalized := slices.Contains(class.Finalizers, karpenter.EC2NodeClassTerminationFinalizer)
	switch {
	case class.DeletionTimestamp != nil:
		return s.endClass(class, finalized, claims)
	case !finalized:
		class = class.DeepCopy()
		class.Finalizers = append(class.Finalizers, karpenter.EC2NodeClassTerminationFinalizer)
		return []effect.Effect{effect.Update{Object: class}}
	case class.Spec.Role == "":
		// A017: with an instance profile of the user's own no IAM call is made.
		return nil
	}
	every := profileCheck
	if !class.Status.Conditions.True(karpenter.ConditionTypeInstanceProfileReady) || class.Status.InstanceProfile != s.profileName(class) {
		every = resend
	}
	if !s.due(fmt.Sprintf("profile/%s/%d", class.UID, class.Generation), every) {
		return nil
	}
	return []effect.Effect{effect.Send{Body: s.ensure(class, false)}}
}

// endClass lets a node class go once no claim refers to it (B058).
func (s *Service) endClass(class *karpenter.EC2NodeClass, finalized bool, claims []*karpenter.NodeClaim) []effect.Effect {
	if !finalized {
		return nil
	}
	for _, c := range claims {
		if c.Spec.NodeClassRef != nil && c.Spec.NodeClassRef.Name == class.Name {
			return []effect.Effect{effect.Report{Event: cluster.Event{
				About: class, Kind: cluster.NodeClasses, Type: "Normal", Reason: "WaitingOnNodeClaimTermination",
				Message: "NodeClaim " + c.Name + " still uses it", Dedupe: 2 * time.Minute, Now: s.Now(),
			}}}
		}
	}
	if class.Spec.Role == "" {
		return []effect.Effect{effect.Update{Object: releasedClass(class)}}
	}
	if !s.due("unprofile/"+string(class.UID), resend) {
		return nil
	}
	return []effect.Effect{effect.Send{Body: s.ensure(class, true)}}
}

func (s *Service) releaseClass(ctx context.Context, class *karpenter.EC2NodeClass) error {
	if class.DeletionTimestamp == nil {
		return nil
	}
	return s.do.Do(ctx, nil, effect.Update{Object: releasedClass(class)})
}

func releasedClass(class *karpenter.EC2NodeClass) *karpenter.EC2NodeClass {
	class = class.DeepCopy()
	class.Finalizers = slices.DeleteFunc(class.Finalizers, func(f string) bool { return f == karpenter.EC2NodeClassTerminationFinalizer })
	return class
}

// ensure is the question about a class's instance profile. The tags are those
// that IAM policies of this ecosystem demand (A074–A077).
func (s *Service) ensure(class *karpenter.EC2NodeClass, remove bool) event.NodeClassEnsure {
	return event.NodeClassEnsure{
		Name: class.Name, UID: string(class.UID), Role: class.Spec.Role, Profile: s.profileName(class),
		Path: fmt.Sprintf("/karpenter/%s/%s/%s/", s.Region, s.Cluster.Name, class.UID),
		Tags: map[string]string{
			karpenter.ClusterTagPrefix + s.Cluster.Name: "owned",
			karpenter.EKSClusterNameTagKey:              s.Cluster.Name,
			karpenter.NodeClassTagKey:                   class.Name,
			"topology.kubernetes.io/region":             s.Region,
		},
		Delete: remove, Asked: s.Now().UTC(),
	}
}

// profileName is derived from what the profile is for (B197), within IAM's 128
// characters.
func (s *Service) profileName(class *karpenter.EC2NodeClass) string {
	id := event.DeriveID("instance-profile", s.Cluster, s.Region, string(class.UID), class.Spec.Role)
	name := s.Cluster.Name
	const longest, suffix = 128, 20
	if len(name) > longest-suffix-1 {
		name = name[:longest-suffix-1]
	}
	return name + "_" + id[:suffix]
}

func subnets(in []event.Subnet) []karpenter.Subnet {
	var out []karpenter.Subnet
	for _, x := range in {
		out = append(out, karpenter.Subnet{ID: x.ID, Zone: x.Zone, ZoneID: x.ZoneID})
	}
	return out
}

func groups(in []event.SecurityGroup) []karpenter.SecurityGroup {
	var out []karpenter.SecurityGroup
	for _, x := range in {
		out = append(out, karpenter.SecurityGroup{ID: x.ID, Name: x.Name})
	}
	return out
}

func images(in []event.Image) ([]karpenter.AMI, error) {
	var out []karpenter.AMI
	for _, x := range in {
		ami := karpenter.AMI{ID: x.ID, Name: x.Name, Deprecated: x.Deprecated}
		if len(x.Requirements) > 0 {
			if err := json.Unmarshal(x.Requirements, &ami.Requirements); err != nil {
				return nil, fault.E("reading the requirements of image "+x.ID, fault.Poison, err)
			}
		}
		out = append(out, ami)
	}
	return out, nil
}
