package launchspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// Unplanned reports whether a user created the NodeClaim, not a plan.
func Unplanned(claim *karpenter.NodeClaim) bool {
	return claim.Annotations[BatchAnnotation] == "" || claim.Annotations[UnplannedAnnotation] != ""
}

// WaitsUnplanned reports whether a user created the NodeClaim and no launch has been admitted for it.
func WaitsUnplanned(claim *karpenter.NodeClaim) bool {
	return claim.IsManaged() && Unplanned(claim) && claim.Annotations[AdmittedAnnotation] == "" && claim.DeletionTimestamp == nil && claim.Status.ProviderID == ""
}

// unplanned adds the launches of user-created NodeClaims. For a NodeClaim that cannot be launched it
// adds the reason to the plan.
func (b *builder) unplanned(s planning.Snapshot, claims []karpenter.NodeClaim) error {
	for i := range claims {
		err := b.addUnplanned(s, &claims[i])
		if fault.Is(err, fault.Invalid) {
			b.built.Plan.UnlaunchableClaims = append(b.built.Plan.UnlaunchableClaims, planning.UnlaunchableClaim{Claim: claims[i].Name, Reason: err.Error()})
			continue
		}
		if err != nil {
			return fmt.Errorf("writing the launch of NodeClaim %s: %w", claims[i].Name, err)
		}
	}
	return nil
}

func (b *builder) addUnplanned(s planning.Snapshot, claim *karpenter.NodeClaim) error {
	pool := solver.NewPoolFromClaim(claim)
	node, err := solver.PlanNode(&pool, claim.Spec.Resources.Requests, s, b.catalogue)
	if err != nil {
		return err
	}
	node.DeviceDrivers = karpenter.RequestedDRADrivers(claim)
	s.NodePools = []karpenter.NodePool{pool}
	b.batch.Snapshot, b.machines, b.existing = s, newMachines([]planning.PlannedNode{node}, s, b.catalogue), claim
	return b.add([]planning.PlannedNode{node})
}

// addTo returns what lifecycle adds to an existing NodeClaim: the labels and annotations of the
// planned one, under the name and UID of the existing one. The NodePool hash is left out, because
// NewPoolFromClaim derived that NodePool from the NodeClaim. Lifecycle adds the instance type label
// after the launch.
func addTo(existing *karpenter.NodeClaim, planned karpenter.NodeClaim) karpenter.NodeClaim {
	out := karpenter.NodeClaim{TypeMeta: planned.TypeMeta, Spec: existing.Spec}
	out.Name, out.UID, out.Labels, out.Annotations = existing.Name, existing.UID, planned.Labels, planned.Annotations
	delete(out.Labels, corev1.LabelInstanceTypeStable)
	for _, key := range []string{karpenter.NodePoolHashAnnotationKey, karpenter.NodePoolHashVersionAnnotationKey} {
		delete(out.Annotations, key)
	}
	out.Annotations[UnplannedAnnotation] = "true"
	return out
}

// VerifyUnplanned is Verify for the launch of a user-created NodeClaim. It derives the launch from the
// live NodeClaim.
func VerifyUnplanned(planned planning.PlannedIntent, intent Intent, claim *karpenter.NodeClaim, s planning.Snapshot, cat catalog.Catalogue) error {
	pool := solver.NewPoolFromClaim(claim)
	s.NodePools = []karpenter.NodePool{pool}
	node, err := solver.PlanNode(&pool, claim.Spec.Resources.Requests, s, cat)
	if err != nil {
		return unlike("%w", err)
	}
	node.DeviceDrivers = karpenter.RequestedDRADrivers(claim)
	if len(planned.Claims) != 1 || !slices.Equal(intent.Claims, []string{claim.Name}) {
		return unlike("the intent launches the NodeClaims %v, but the user created %s", intent.Claims, claim.Name)
	}
	if !LaunchesUnplanned(intent.ID, claim.Name) {
		return unlike("the id of the intent does not derive from the NodeClaim %s", claim.Name)
	}
	return verify(planned, intent, node, s, cat, claim)
}
