package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// launchSources are the documents and objects with which the intents of a plan are verified.
type launchSources struct {
	// snapshot has no NodePools.
	snapshot  planning.Snapshot
	catalogue catalog.Catalogue
	// intents are in the order of the plan.
	intents []launchspec.Intent
}

// sourceReads returns the calls that read the sources of a plan. They may run at the same time.
func (s *Service) sourceReads(ctx context.Context, plan planning.Plan, into *launchSources) []func() error {
	if s.Catalogues == nil || len(plan.Intents) == 0 {
		return nil
	}
	into.intents = make([]launchspec.Intent, len(plan.Intents))
	reads := []func() error{
		func() (err error) { into.snapshot, err = s.readSnapshot(ctx); return err },
		func() (err error) { into.catalogue, err = s.readLatestCatalogue(ctx); return err },
	}
	for i, planned := range plan.Intents {
		reads = append(reads, func() (err error) {
			if into.intents[i], err = blob.Get[launchspec.Intent](ctx, s.Blobs, planned.Ref); err != nil {
				return fmt.Errorf("reading intent %s to verify it: %w", planned.ID, err)
			}
			return nil
		})
	}
	return reads
}

// readAll makes the calls, several at the same time.
func (s *Service) readAll(reads []func() error) error {
	return errors.Join(s.executor.ForEach(len(reads), func(i int) error { return reads[i]() })...)
}

// admitPlan decides which intents of a plan are admitted. They must match their NodePool, their
// EC2NodeClass and the latest catalogue, and be within the limits. NodePools are read
// live, and so are the claims, or listCountedClaims returned them.
func (s *Service) admitPlan(ctx context.Context, d admission.Admitter, plan planning.Plan, sources launchSources, pools []*karpenter.NodePool, claims []*karpenter.NodeClaim) (admission.Admission, error) {
	forged, err := s.verifyPlan(plan, sources, pools, claims)
	if err != nil {
		return admission.Admission{}, err
	}
	isForged := func(intent planning.PlannedIntent) bool {
		return slices.ContainsFunc(forged, func(r admission.Refusal) bool { return r.Intent == intent.ID })
	}
	plan.Intents = slices.DeleteFunc(slices.Clone(plan.Intents), isForged)
	admission := d.AdmitPlan(plan, pools, claims)
	admission.Refused = append(forged, admission.Refused...)
	host.AddLogFields(ctx, "intents", len(admission.Intents), "refused", len(admission.Refused), "unverified", len(forged), "claims", len(admission.Claims))
	for _, r := range forged {
		host.AddLogFields(ctx, "reason", r.Reason)
		if pool, known := s.Cache.Get(cluster.NodePools, cluster.Key{Name: r.NodePool}); known {
			_ = s.executor.ExecuteOne(ctx, events.LaunchNotVerified.About(cluster.NodePools, pool, s.Now(), "a planned launch was rejected: %s", r.Reason))
		}
	}
	return admission, nil
}

// verifyPlan rejects the intents that cannot be derived from NodePools, node classes and the
// catalogue.
func (s *Service) verifyPlan(plan planning.Plan, sources launchSources, pools []*karpenter.NodePool, claims []*karpenter.NodeClaim) ([]admission.Refusal, error) {
	if len(sources.intents) == 0 {
		return nil, nil
	}
	snapshot := sources.snapshot
	for _, pool := range pools {
		snapshot.NodePools = append(snapshot.NodePools, *pool)
	}
	refusals := make([]*admission.Refusal, len(plan.Intents))
	failures := s.executor.ForEach(len(plan.Intents), func(i int) error {
		planned, intent := plan.Intents[i], sources.intents[i]
		if err := verifyIntent(planned, intent, claims, snapshot, sources.catalogue); fault.Is(err, fault.Invalid) {
			refusals[i] = &admission.Refusal{Intent: planned.ID, NodePool: planned.NodePool, Reason: err.Error()}
		} else if err != nil {
			return err
		} else {
			s.metricState.recordUserData(intent)
		}
		return nil
	})
	var out []admission.Refusal
	for _, refusal := range refusals {
		if refusal != nil {
			out = append(out, *refusal)
		}
	}
	return out, errors.Join(failures...)
}

// verifyIntent compares the launch of a user-created claim with that claim, and any other launch
// with its NodePool.
func verifyIntent(planned planning.PlannedIntent, intent launchspec.Intent, claims []*karpenter.NodeClaim, snapshot planning.Snapshot, cat catalog.Catalogue) error {
	for _, one := range planned.Claims {
		if uid := one.Object.UID; uid != "" {
			at := slices.IndexFunc(claims, func(c *karpenter.NodeClaim) bool { return c.UID == uid })
			if at < 0 {
				return fault.F("verifying an intent", fault.Invalid, "there is no NodeClaim %s with the UID %s", one.Object.Name, uid)
			}
			return launchspec.VerifyUnplanned(planned, intent, claims[at], snapshot, cat)
		}
	}
	return launchspec.Verify(planned, intent, snapshot, cat)
}

// readSnapshot reads the objects from which launches are derived, except NodePools: EC2NodeClasses,
// the memory of nodes, and NodeOverlays if their feature gate is on.
func (s *Service) readSnapshot(ctx context.Context) (planning.Snapshot, error) {
	out := planning.Snapshot{Cluster: s.Cluster.Name, UID: s.Cluster.UID, Settings: s.Settings, Nodes: s.listReportedMemory()}
	classes, err := cluster.List[*karpenter.EC2NodeClass](ctx, s.Client, cluster.NodeClasses)
	if err != nil {
		return out, fmt.Errorf("listing EC2NodeClasses: %w", err)
	}
	for _, class := range classes {
		out.NodeClasses = append(out.NodeClasses, *class)
	}
	if !s.Settings.Gates.NodeOverlay {
		return out, nil
	}
	overlays, err := cluster.List[*karpenter.NodeOverlay](ctx, s.Client, cluster.NodeOverlays)
	if err != nil {
		return out, fmt.Errorf("listing NodeOverlays: %w", err)
	}
	for _, overlay := range overlays {
		out.NodeOverlays = append(out.NodeOverlays, *overlay)
	}
	return out, nil
}

// listReportedMemory returns the initialized node of each instance type and image that reports the least memory, with
// only that.
func (s *Service) listReportedMemory() []planning.Node {
	nodes, least := nodesByProvider(s.Cache), map[[2]string]planning.Node{}
	for _, claim := range cluster.ListCached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims) {
		node := nodes[claim.Status.ProviderID]
		if node == nil || node.Status.Capacity.Memory().IsZero() || !claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
			continue
		}
		key := [2]string{node.Labels[corev1.LabelInstanceTypeStable], claim.Status.ImageID}
		have, known := least[key]
		if memory := node.Status.Capacity[corev1.ResourceMemory]; !known || memory.Cmp(have.Capacity[corev1.ResourceMemory]) < 0 {
			least[key] = planning.Node{
				Initialized: true, Image: key[1], Labels: map[string]string{corev1.LabelInstanceTypeStable: key[0]},
				Capacity: corev1.ResourceList{corev1.ResourceMemory: memory},
			}
		}
	}
	return slices.Collect(maps.Values(least))
}

// readLatestCatalogue reads the catalogue that the catalog service published last.
func (s *Service) readLatestCatalogue(ctx context.Context) (catalog.Catalogue, error) {
	ref, err := blob.GetLatest(ctx, s.Blobs, catalog.Kind)
	if err != nil {
		return catalog.Catalogue{}, err
	}
	cat, err := s.Catalogues.Get(ctx, s.Blobs, ref)
	if err != nil {
		return cat, fmt.Errorf("reading the latest catalogue: %w", err)
	}
	return cat, nil
}
