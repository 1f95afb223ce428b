package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// NominatedAnnotation is the time until which pods are expected on a claim.
const NominatedAnnotation = "joist.sh/nominated-until"

// NominationWindow is max(2×batchMaxDuration, 10 s) at the default of 10 s.
const NominationWindow = 20 * time.Second

// handlePlanMade admits a plan. The order of its steps prevents double launches: read the outbox,
// count the existing claims, commit the count by a swap of the outbox, create the claims, and allow
// their launch with a second swap.
func (s *Service) handlePlanMade(ctx context.Context, e event.Envelope, b event.PlanMade) error {
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return err
	}
	if err := held.CheckPlan(b); err != nil {
		return err
	}
	if held.State == outbox.Done {
		return nil
	}
	plan, err := blob.Get[planning.Plan](ctx, s.Blobs, b.Plan)
	if err != nil {
		return fmt.Errorf("reading the plan of batch %d: %w", b.Seq, err)
	}
	if held.State == outbox.Sent {
		if held, err = s.admitBatch(ctx, held, plan, b); err != nil {
			return err
		}
	}
	held, err = s.executePlan(ctx, e, held, plan)
	if err != nil && held.State != outbox.Done {
		return err
	}
	return errors.Join(err, s.recordReplacements(ctx, plan), s.reportPlan(ctx, plan, held.Outbox))
}

// executePlan creates the claims of an admitted plan. It launches them once the outbox lists the
// existing ones.
func (s *Service) executePlan(ctx context.Context, e event.Envelope, held outbox.Stored, plan planning.Plan) (outbox.Stored, error) {
	var created []*karpenter.NodeClaim
	if held.State == outbox.Applying {
		uids, stored, refused, err := s.createClaims(ctx, e, held, plan)
		if err != nil {
			return held, err
		}
		created = stored
		if held, err = held.Swap(ctx, s.Client, completeOutbox(held.Outbox, uids, refused, s.Now())); err != nil {
			return held, err
		}
		s.counted.completePlan(held, created, s.Cache)
	}
	if err := s.nominateClaims(ctx, plan); err != nil {
		return held, err
	}
	return held, s.launchClaims(ctx, &e, held.Outbox, created)
}

// admitBatch counts, and swaps the outbox from sent to applying.
func (s *Service) admitBatch(ctx context.Context, held outbox.Stored, plan planning.Plan, b event.PlanMade) (outbox.Stored, error) {
	var (
		pools   []*karpenter.NodePool
		claims  []*karpenter.NodeClaim
		sources launchSources
	)
	reads := []func() error{
		func() (err error) {
			if pools, err = cluster.List[*karpenter.NodePool](ctx, s.Client, cluster.NodePools); err != nil {
				return fmt.Errorf("listing NodePools to admit a plan: %w", err)
			}
			return nil
		},
		func() (err error) { claims, err = s.listCountedClaims(ctx, held, plan); return err },
	}
	if err := s.readAll(append(reads, s.sourceReads(ctx, plan, &sources)...)); err != nil {
		return held, err
	}
	admission, err := s.admitPlan(ctx, admission.Admitter{PriceLimit: s.PriceLimit}, plan, sources, pools, claims)
	if err != nil {
		return held, err
	}
	s.explainNotLaunched(ctx, plan, admission.Refused)
	next := held.Outbox
	next.State, next.Plan, next.Since = outbox.Applying, b.Plan.Digest, s.Now()
	next.Claims, next.UIDs = admission.Claims, findUIDs(admission.Claims, plan, claims)
	return held.Swap(ctx, s.Client, next)
}

// findUIDs returns the UIDs of the claims of earlier plans among those with the names.
func findUIDs(names []string, plan planning.Plan, claims []*karpenter.NodeClaim) map[string]types.UID {
	earlier := map[string]bool{}
	for _, name := range names {
		earlier[name] = true
	}
	for _, intent := range plan.Intents {
		for _, c := range intent.Claims {
			delete(earlier, c.Object.Name)
		}
	}
	uids := map[string]types.UID{}
	for _, c := range claims {
		if earlier[c.Name] {
			uids[c.Name] = c.UID
		}
	}
	return uids
}

// listedClaim is a planned claim that the outbox lists, with the index of its intent in the plan.
type listedClaim struct {
	planning.PlannedClaim
	intent int
}

// createClaims creates the claims that the outbox lists, and returns their UIDs. It also returns the names of the dropped
// ones: all claims of an intent if the API server rejects one of them as invalid, because the same plan would be rejected
// forever. stored are the claims as the API server stored them, also the dropped ones: they count until they are deleted. If
// a name exists, its claim comes from an earlier delivery of the message.
func (s *Service) createClaims(ctx context.Context, e event.Envelope, held outbox.Stored, plan planning.Plan) (created map[string]types.UID, stored []*karpenter.NodeClaim, dropped []string, err error) {
	var listed []listedClaim
	for at, intent := range plan.Intents {
		for _, planned := range intent.Claims {
			if held.ListsClaim(planned.Object.Name) {
				listed = append(listed, listedClaim{planned, at})
			}
		}
	}
	uids, claims := make([]types.UID, len(listed)), make([]*karpenter.NodeClaim, len(listed))
	failures := s.executor.ForEach(len(listed), func(i int) (err error) {
		uids[i], claims[i], err = s.createClaim(ctx, e, held, listed[i].PlannedClaim)
		return err
	})
	invalid := map[int]bool{}
	for i, failure := range failures {
		if at := listed[i].intent; fault.Is(failure, fault.Invalid) {
			s.reportRefused(ctx, plan.Intents[at].NodePool, failure)
			invalid[at], failures[i] = true, nil
		}
	}
	created = map[string]types.UID{}
	for i, one := range listed {
		if claims[i] != nil {
			stored = append(stored, claims[i])
		}
		if invalid[one.intent] {
			dropped = append(dropped, one.Object.Name)
			continue
		}
		created[one.Object.Name] = uids[i]
	}
	if len(dropped) > 0 {
		host.AddLogFields(ctx, "dropped_claims", len(dropped))
	}
	return created, stored, dropped, errors.Join(failures...)
}

// createClaim creates one claim, or writes the launch on a claim that a user created, and returns its UID. It returns
// the claim as the API server stored it, nil for a claim that was deleted since.
// Replacements are planned without a sequence number and get the outbox's.
func (s *Service) createClaim(ctx context.Context, e event.Envelope, held outbox.Stored, planned planning.PlannedClaim) (types.UID, *karpenter.NodeClaim, error) {
	if planned.Object.UID != "" {
		written, err := s.writeLaunch(ctx, held, planned)
		return planned.Object.UID, written, err
	}
	claim := planned.Object.DeepCopy()
	annotateObject(claim, launchspec.BatchAnnotation, admission.BatchID(held.UID(), held.Seq))
	if planned.Pods > 0 {
		annotateObject(claim, NominatedAnnotation, s.Now().Add(NominationWindow).Format(time.RFC3339))
	}
	s.writeTrace(claim, e)
	stored, err := s.Client.Create(ctx, claim)
	if fault.Is(err, fault.Conflict) {
		stored, err = s.Client.Get(ctx, cluster.NodeClaims, cluster.KeyOf(claim))
	}
	if fault.Is(err, fault.Missing) {
		return "", nil, nil // It was created by an earlier delivery and has been deleted since.
	}
	if err != nil {
		return "", nil, fmt.Errorf("creating NodeClaim %s: %w", claim.Name, err)
	}
	return stored.GetUID(), stored.(*karpenter.NodeClaim), nil
}

// reportRefused publishes an Event on a NodePool whose claim the API server rejected.
func (s *Service) reportRefused(ctx context.Context, pool string, refusal error) {
	if object, known := s.Cache.Get(cluster.NodePools, cluster.Key{Name: pool}); known {
		_ = s.executor.ExecuteOne(ctx, events.NodeClaimRefused.About(cluster.NodePools, object, s.Now(), "the API server rejected a planned NodeClaim: %v", refusal))
	}
}

// completeOutbox returns the outbox after all claims but the dropped ones were created, with their UIDs. The
// dropped claims of a batch stay listed as refused until the next batch. A replacement plan
// belongs to no batch.
func completeOutbox(o outbox.Outbox, created map[string]types.UID, dropped []string, now time.Time) outbox.Outbox {
	o.State, o.Since = outbox.Done, now
	uids := maps.Clone(created)
	maps.Copy(uids, o.UIDs)
	o.UIDs = uids
	o.Claims = slices.DeleteFunc(slices.Clone(o.Claims), func(name string) bool { return slices.Contains(dropped, name) })
	if !o.Batch.IsZero() {
		o.Refused = dropped
	}
	return o
}

// nominateClaims prevents disruption of existing claims on which the plan expects pods. Losing a
// nomination is harmless, because the pods are in the next batch again. Capacity buffers are not
// pods and do not prevent the replacement of a node. Claims that the plan creates have the annotation already.
func (s *Service) nominateClaims(ctx context.Context, plan planning.Plan) error {
	created := map[string]bool{}
	for _, intent := range plan.Intents {
		for _, c := range intent.Claims {
			created[c.Object.Name] = c.Object.UID == "" && c.Pods > 0
		}
	}
	var names []string
	for _, n := range plan.Nominations {
		if n.Pod.Buffer == "" && !created[n.Claim] {
			names = append(names, n.Claim)
		}
	}
	slices.Sort(names)
	until := s.Now().Add(NominationWindow).Format(time.RFC3339)
	names = slices.Compact(names)
	return errors.Join(s.executor.ForEach(len(names), func(i int) error {
		object, ok := s.Cache.Get(cluster.NodeClaims, cluster.Key{Name: names[i]})
		if !ok {
			return nil
		}
		claim := object.(*karpenter.NodeClaim).DeepCopy()
		if !claim.IsManaged() {
			return nil
		}
		annotateObject(claim, NominatedAnnotation, until)
		return s.executor.Execute(ctx, nil, effect.Update{Object: claim})
	})...)
}

func annotateObject(o cluster.Object, key, value string) {
	annotations := map[string]string{}
	maps.Copy(annotations, o.GetAnnotations())
	annotations[key] = value
	o.SetAnnotations(annotations)
}
