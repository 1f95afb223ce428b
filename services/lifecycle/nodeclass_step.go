package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclass"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const (
	// profileCheck is how often an instance profile that stands is looked at,
	// and dryRunCheck how often a class that has passed is tried again.
	profileCheck = 15 * time.Minute
	dryRunCheck  = 10 * time.Minute
	// refusedCheck is how often what was refused is tried again.
	refusedCheck = time.Minute
	// waitingEvery is how often an Event says why a class does not go, and
	// waitingNames how many claims it names.
	waitingEvery = 2 * time.Minute
	waitingNames = 5
)

// nodeClasses keeps the finalizer, the instance profile and the judgement of each
// node class. One that fails holds up no other.
func (s *Service) nodeClasses(ctx context.Context, w world) error {
	users := map[string][]*karpenter.NodeClaim{}
	for _, c := range w.claims {
		if ref := c.Spec.NodeClassRef; ref != nil {
			users[ref.Name] = append(users[ref.Name], c)
		}
	}
	var failures []error
	for _, class := range cluster.Cached[*karpenter.EC2NodeClass](s.Cache, cluster.NodeClasses) {
		effects, err := s.nodeClassEffects(class, users[class.Name])
		if err == nil {
			err = s.do.Do(ctx, nil, effects...)
		}
		if class.DeletionTimestamp == nil {
			err = errors.Join(err, s.rehash(ctx, nodeclass.Rehashed(class, users[class.Name])))
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("EC2NodeClass %s: %w", class.Name, err))
		}
	}
	return worth(failures)
}

// rehash writes claims with the hash of their pool or class. A claim that cannot be
// written does not stop the others, and one that is gone needs no hash.
func (s *Service) rehash(ctx context.Context, claims []*karpenter.NodeClaim) error {
	return errors.Join(s.do.Each(len(claims), func(i int) error {
		err := s.do.One(ctx, effect.Update{Object: claims[i]})
		if fault.Is(err, fault.Missing) {
			return nil
		}
		return err
	})...)
}

func (s *Service) nodeClassEffects(class *karpenter.EC2NodeClass, users []*karpenter.NodeClaim) ([]effect.Effect, error) {
	finalized := slices.Contains(class.Finalizers, karpenter.EC2NodeClassTerminationFinalizer)
	switch {
	case class.DeletionTimestamp != nil:
		return s.endClass(class, finalized, users), nil
	case !finalized, s.unremembered(class):
		return []effect.Effect{effect.Update{Object: s.kept(class, finalized)}}, nil
	}
	return s.askFor(class)
}

// unremembered reports whether a profile is to be made for the class which the
// class does not say yet. It is written down before anybody is asked to make it:
// once the role has left the spec nothing else tells what was made for it.
func (s *Service) unremembered(class *karpenter.EC2NodeClass) bool {
	return managedRole(class) != "" && class.Annotations[nodeclass.ProfileAnnotation] != s.profileName(class)
}

// kept is the class with its finalizer, and with the name of what is made for it.
func (s *Service) kept(class *karpenter.EC2NodeClass, finalized bool) *karpenter.EC2NodeClass {
	class = class.DeepCopy()
	if !finalized {
		class.Finalizers = append(class.Finalizers, karpenter.EC2NodeClassTerminationFinalizer)
	}
	if managedRole(class) != "" {
		annotate(class, nodeclass.ProfileAnnotation, s.profileName(class))
	}
	return class
}

// askFor asks the launcher for the class's instance profile and for dry runs, as
// far as either is wanted: soon again while something is missing.
func (s *Service) askFor(class *karpenter.EC2NodeClass) ([]effect.Effect, error) {
	try := s.DryRuns && nodeclass.Triable(class)
	role := managedRole(class)
	if role == "" && formerProfile(class) == "" && !try {
		// with an instance profile of the user's own no IAM call is made, unless
		// one that we had made for it is left.
		return nil, nil
	}
	if !s.due(fmt.Sprintf("class/%s/%d/%t", class.UID, class.Generation, try), s.patience(class, role != "", try)) {
		return nil, nil
	}
	question := s.ensure(class, false)
	if try {
		text, err := nodeclass.Tried(class)
		if err != nil {
			return nil, err
		}
		question.Class, question.Tenancy = text, s.triedTenancy(class)
	}
	return []effect.Effect{effect.Send{Body: question}}, nil
}

// triedTenancy is "dedicated" if a NodePool of the class states that its instances may be dedicated, else empty
// (Karpenter: pkg/controllers/nodeclass/validation.go, getTenancyType).
func (s *Service) triedTenancy(class *karpenter.EC2NodeClass) string {
	for _, pool := range cluster.Cached[*karpenter.NodePool](s.Cache, cluster.NodePools) {
		ref := pool.Spec.Template.Spec.NodeClassRef
		if ref == nil || ref.Name != class.Name {
			continue
		}
		values, stated := planning.FromClaim(pool.Spec.Template.Spec.Requirements)[karpenter.LabelInstanceTenancy]
		if stated && values.Has(karpenter.TenancyDedicated) {
			return karpenter.TenancyDedicated
		}
	}
	return ""
}

// patience is how long to wait before the launcher is asked again.
func (s *Service) patience(class *karpenter.EC2NodeClass, managed, try bool) time.Duration {
	conditions := class.Status.Conditions
	switch {
	case managed && (!conditions.True(karpenter.ConditionTypeInstanceProfileReady) || class.Status.InstanceProfile != s.profileName(class)):
		return resend
	case try && conditions.False(karpenter.ConditionTypeValidationSucceeded):
		return refusedCheck
	case try && !nodeclass.Validated(class):
		return resend
	case try:
		return dryRunCheck
	}
	return profileCheck
}

// endClass lets a node class go once no claim refers to it, and when what
// was made for it in AWS is gone.
func (s *Service) endClass(class *karpenter.EC2NodeClass, finalized bool, users []*karpenter.NodeClaim) []effect.Effect {
	switch {
	case !finalized:
		return nil
	case len(users) > 0:
		return []effect.Effect{effect.Report{Event: cluster.Event{
			About: class, Kind: cluster.NodeClasses, Type: "Normal", Reason: "WaitingOnNodeClaimTermination",
			Message: "Waiting on NodeClaim termination for " + names(users), Dedupe: waitingEvery, Now: s.Now(),
		}}}
	case !s.due("unclass/"+string(class.UID), resend):
		return nil
	}
	return []effect.Effect{effect.Send{Body: s.ensure(class, true)}}
}

func names(claims []*karpenter.NodeClaim) string {
	var out []string
	for _, c := range claims {
		out = append(out, c.Name)
	}
	slices.Sort(out)
	if more := len(out) - waitingNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(out[:waitingNames], ", "), more)
	}
	return strings.Join(out, ", ")
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

// managedRole is the role for which an instance profile is made; none where the
// class brings a profile along, not even where it names a role too.
func managedRole(class *karpenter.EC2NodeClass) string {
	if class.Spec.InstanceProfile != nil {
		return ""
	}
	return class.Spec.Role
}

// formerProfile is the profile that was made for the class's role, where the
// class brings one of its own by now.
func formerProfile(class *karpenter.EC2NodeClass) string {
	if managedRole(class) != "" {
		return ""
	}
	return class.Annotations[nodeclass.ProfileAnnotation]
}

// ensure is the question about a class. The tags are those that IAM policies of
// this ecosystem demand.
func (s *Service) ensure(class *karpenter.EC2NodeClass, remove bool) event.NodeClassEnsure {
	profile := s.profileName(class)
	if class.Spec.InstanceProfile != nil {
		profile = *class.Spec.InstanceProfile
	}
	return event.NodeClassEnsure{
		Name: class.Name, UID: string(class.UID), Role: managedRole(class), Profile: profile, Generation: class.Generation,
		Former: formerProfile(class),
		Path:   fmt.Sprintf("/karpenter/%s/%s/%s/", s.Region, s.Cluster.Name, class.UID),
		Tags: map[string]string{
			karpenter.ClusterTagPrefix + s.Cluster.Name: "owned",
			karpenter.EKSClusterNameTagKey:              s.Cluster.Name,
			karpenter.NodeClassTagKey:                   class.Name,
			"topology.kubernetes.io/region":             s.Region,
		},
		Delete: remove, Asked: s.Now().UTC(),
	}
}

// profileName is derived from what the profile is for, within IAM's 128
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
