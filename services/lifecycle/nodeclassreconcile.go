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
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

const (
	// profileCheckInterval is how often a ready instance profile is checked, and dryRunInterval
	// how often a validated class is validated again.
	profileCheckInterval = 15 * time.Minute
	dryRunInterval       = 10 * time.Minute
	// failedDryRunInterval is how often a failed validation is repeated.
	failedDryRunInterval = time.Minute
	// waitingEventInterval is how often an Event reports why a class is not deleted, and
	// maxWaitingNames how many claims it names.
	waitingEventInterval = 2 * time.Minute
	maxWaitingNames      = 5
)

// reconcileNodeClasses maintains the finalizer, the instance profile and the validation of each
// node class. An error on one does not stop the others.
func (s *Service) reconcileNodeClasses(ctx context.Context, w clusterState) error {
	users := map[string][]*karpenter.NodeClaim{}
	for _, c := range w.claims {
		if ref := c.Spec.NodeClassRef; ref != nil {
			users[ref.Name] = append(users[ref.Name], c)
		}
	}
	var failures []error
	for _, class := range cluster.ListCached[*karpenter.EC2NodeClass](s.Cache, cluster.NodeClasses) {
		effects, err := s.nodeClassEffects(ctx, class, users[class.Name])
		if err == nil {
			err = s.executor.Execute(ctx, nil, effects...)
		}
		if class.DeletionTimestamp == nil {
			err = errors.Join(err, s.updateHashes(ctx, nodeclass.RehashClaims(class, users[class.Name])))
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("EC2NodeClass %s: %w", class.Name, err))
		}
	}
	return joinUnexpected(failures)
}

// updateHashes writes claims with the hash of their NodePool or node class. An error on one does
// not stop the others, and a missing claim is no error.
func (s *Service) updateHashes(ctx context.Context, claims []*karpenter.NodeClaim) error {
	return errors.Join(s.executor.ForEach(len(claims), func(i int) error {
		err := s.executor.ExecuteOne(ctx, effect.Update{Object: claims[i]})
		if fault.Is(err, fault.Missing) {
			return nil
		}
		return err
	})...)
}

func (s *Service) nodeClassEffects(ctx context.Context, class *karpenter.EC2NodeClass, users []*karpenter.NodeClaim) ([]effect.Effect, error) {
	finalized := slices.Contains(class.Finalizers, karpenter.EC2NodeClassTerminationFinalizer)
	switch {
	case class.DeletionTimestamp != nil:
		return s.finalizeClass(class, finalized, users), nil
	case !finalized, s.needsProfileAnnotation(class):
		return []effect.Effect{effect.Update{Object: s.withFinalizerAndProfile(class, finalized)}}, nil
	}
	return s.requestEnsure(ctx, class)
}

// needsProfileAnnotation reports whether the class must record the name of its managed instance
// profile. It is recorded before the profile is created, because once the role is removed from the
// spec, nothing else names the profile.
func (s *Service) needsProfileAnnotation(class *karpenter.EC2NodeClass) bool {
	return managedRole(class) != "" && class.Annotations[launchspec.ProfileAnnotation] != s.profileName(class)
}

// withFinalizerAndProfile returns the class with its finalizer and the name of its managed
// profile.
func (s *Service) withFinalizerAndProfile(class *karpenter.EC2NodeClass, finalized bool) *karpenter.EC2NodeClass {
	class = class.DeepCopy()
	if !finalized {
		class.Finalizers = append(class.Finalizers, karpenter.EC2NodeClassTerminationFinalizer)
	}
	if managedRole(class) != "" {
		annotateObject(class, launchspec.ProfileAnnotation, s.profileName(class))
	}
	return class
}

// requestEnsure requests the instance profile and the dry runs of a class from the launcher, sooner
// if one of them is missing.
func (s *Service) requestEnsure(ctx context.Context, class *karpenter.EC2NodeClass) ([]effect.Effect, error) {
	try := s.DryRuns && nodeclass.CanDryRun(class)
	role := managedRole(class)
	if role == "" && formerProfile(class) == "" && !try {
		// Without a role, and without a former managed profile, no IAM call is made.
		return nil, nil
	}
	if !s.allowAction(fmt.Sprintf("class/%s/%d/%t", class.UID, class.Generation, try), s.ensureInterval(class, role != "", try)) {
		return nil, nil
	}
	question := s.newEnsureRequest(class, false)
	if try {
		pools := s.poolsOfClass(class)
		var err error
		if question.Class, question.InstanceType, err = nodeclass.DryRunInput(class, pools, s.readDryRunTypes(ctx, class)); err != nil {
			return nil, err
		}
		question.Tenancy = dryRunTenancy(pools)
	}
	return []effect.Effect{effect.Send{Body: question}}, nil
}

// poolsOfClass returns the NodePools that refer to the class.
func (s *Service) poolsOfClass(class *karpenter.EC2NodeClass) []*karpenter.NodePool {
	return slices.DeleteFunc(s.listPools(), func(pool *karpenter.NodePool) bool {
		ref := pool.Spec.Template.Spec.NodeClassRef
		return ref == nil || ref.Name != class.Name
	})
}

// readDryRunTypes returns the instance types that the latest catalogue has for the class. It returns none
// if the catalogue cannot be read: the request is also about the instance profile, and dry runs have
// default types.
func (s *Service) readDryRunTypes(ctx context.Context, class *karpenter.EC2NodeClass) []instancetypes.Type {
	if s.Catalogues == nil {
		return nil
	}
	cat, err := s.readLatestCatalogue(ctx)
	if err != nil {
		host.AddLogFields(ctx, "dry_run_catalogue_error", err.Error())
		return nil
	}
	snapshot := planning.Snapshot{Cluster: s.Cluster.Name, UID: s.Cluster.UID, Settings: s.Settings, NodeClasses: []karpenter.EC2NodeClass{*class}}
	return instancetypes.New(snapshot, cat).ByNodeClass[class.Name]
}

// dryRunTenancy returns "dedicated" if a NodePool requires dedicated instances, else "" (Karpenter:
// pkg/controllers/nodeclass/validation.go, getTenancyType).
func dryRunTenancy(pools []*karpenter.NodePool) string {
	for _, pool := range pools {
		values, stated := planning.NewNodeClaimRequirements(pool.Spec.Template.Spec.Requirements)[karpenter.LabelInstanceTenancy]
		if stated && values.Has(karpenter.TenancyDedicated) {
			return karpenter.TenancyDedicated
		}
	}
	return ""
}

// ensureInterval returns how long to wait before the request is repeated.
func (s *Service) ensureInterval(class *karpenter.EC2NodeClass, managed, try bool) time.Duration {
	conditions := class.Status.Conditions
	switch {
	case managed && (!conditions.IsTrue(karpenter.ConditionTypeInstanceProfileReady) || class.Status.InstanceProfile != s.profileName(class)):
		return resendInterval
	case try && nodeclass.IsProfileMissing(class):
		return resendInterval // The profile may have been created a moment ago.
	case try && conditions.IsFalse(karpenter.ConditionTypeValidationSucceeded):
		return failedDryRunInterval
	case try && !nodeclass.IsValidated(class):
		return resendInterval
	case try:
		return dryRunInterval
	}
	return profileCheckInterval
}

// finalizeClass requests the deletion of the managed instance profile once no claim refers to the
// class. The launcher's answer removes the finalizer.
func (s *Service) finalizeClass(class *karpenter.EC2NodeClass, finalized bool, users []*karpenter.NodeClaim) []effect.Effect {
	switch {
	case !finalized:
		return nil
	case len(users) > 0:
		return []effect.Effect{effect.Report{Event: cluster.Event{
			About: class, Kind: cluster.NodeClasses, Type: "Normal", Reason: "WaitingOnNodeClaimTermination",
			Message: "Waiting on NodeClaim termination for " + formatClaimNames(users), Dedupe: waitingEventInterval, Now: s.Now(),
		}}}
	case !s.allowAction("unclass/"+string(class.UID), resendInterval):
		return nil
	}
	return []effect.Effect{effect.Send{Body: s.newEnsureRequest(class, true)}}
}

func formatClaimNames(claims []*karpenter.NodeClaim) string {
	var out []string
	for _, c := range claims {
		out = append(out, c.Name)
	}
	slices.Sort(out)
	if more := len(out) - maxWaitingNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(out[:maxWaitingNames], ", "), more)
	}
	return strings.Join(out, ", ")
}

func (s *Service) removeClassFinalizer(ctx context.Context, class *karpenter.EC2NodeClass) error {
	if class.DeletionTimestamp == nil {
		return nil
	}
	return s.executor.Execute(ctx, nil, effect.Update{Object: withoutClassFinalizer(class)})
}

func withoutClassFinalizer(class *karpenter.EC2NodeClass) *karpenter.EC2NodeClass {
	class = class.DeepCopy()
	class.Finalizers = slices.DeleteFunc(class.Finalizers, func(f string) bool { return f == karpenter.EC2NodeClassTerminationFinalizer })
	return class
}

// managedRole returns the role for which Joist creates an instance profile; "" if the class
// specifies a profile, even if it also names a role.
func managedRole(class *karpenter.EC2NodeClass) string {
	if class.Spec.InstanceProfile != nil {
		return ""
	}
	return class.Spec.Role
}

// formerProfile returns the managed profile of a class that now specifies its own.
func formerProfile(class *karpenter.EC2NodeClass) string {
	if managedRole(class) != "" {
		return ""
	}
	return class.Annotations[launchspec.ProfileAnnotation]
}

// newEnsureRequest returns the request for a class. IAM policies for Karpenter require its tags.
func (s *Service) newEnsureRequest(class *karpenter.EC2NodeClass, remove bool) event.NodeClassEnsure {
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

// profileName derives the name of the managed profile, within IAM's 128 characters.
func (s *Service) profileName(class *karpenter.EC2NodeClass) string {
	id := event.DeriveID("instance-profile", s.Cluster, s.Region, string(class.UID), class.Spec.Role)
	name := s.Cluster.Name
	const longest, suffix = 128, 20
	if len(name) > longest-suffix-1 {
		name = name[:longest-suffix-1]
	}
	return name + "_" + id[:suffix]
}
