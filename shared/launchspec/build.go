package launchspec

import (
	"context"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// maxClaims is how many NodeClaims may share one fleet call. A failed call is planned again as a
// whole, and its result is one message: 50 instances with their errors stay far below the message size
// limit.
const maxClaims = 50

// Built is a plan with the documents that it refers to.
type Built struct {
	Plan    planning.Plan
	Intents []Intent
}

// Build converts a result into requests: nodes with the same offerings share an intent. If the request
// of a node cannot be written, its pods become unplaced with the reason; the other nodes are not
// affected.
func Build(batch planning.Batch, ref event.Ref, result planning.Result, cat catalog.Catalogue) (Built, error) {
	return build(batch, ref, fmt.Sprintf("%s/%d/%s", batch.Outbox, batch.Seq, ref.Digest), result, cat)
}

// Replace is Build for the replacements of a disruption proposal, confirmed on the snapshot of ref.
// The ids derive from both, so that a proposal that is rolled back and confirmed again gets a new
// launch. The caller sets the batch of the NodeClaims when it admits them.
func Replace(proposal string, s planning.Snapshot, ref event.Ref, result planning.Result, cat catalog.Catalogue) (Built, error) {
	return build(planning.Batch{Snapshot: s}, ref, fmt.Sprintf("%s/%s", proposal, ref.Digest), result, cat)
}

func build(batch planning.Batch, ref event.Ref, cause string, result planning.Result, cat catalog.Catalogue) (Built, error) {
	b := builder{batch: batch, ref: ref, cause: cause, catalogue: cat, machines: newMachines(result.Nodes, batch.Snapshot, cat), addresses: newAddresses(batch.Snapshot, cat), built: Built{Plan: planning.Plan{
		Outbox: batch.Outbox, Seq: batch.Seq, Batch: ref,
		Nominations: result.Nominations, Unplaced: result.Unplaced,
		BoundPerHour: result.BoundPerHour, Partial: result.Partial, OverlayStatuses: result.OverlayStatuses,
		Prices: solver.FindMissingPrices(batch.Snapshot, cat),
	}}}
	pods := 0
	for i := range result.Nodes {
		pods += len(result.Nodes[i].Pods)
	}
	b.built.Plan.Nominations = slices.Grow(b.built.Plan.Nominations, pods)
	groups, err := group(result.Nodes)
	if err != nil {
		return Built{}, err
	}
	for _, nodes := range groups {
		err := b.add(nodes)
		if fault.Is(err, fault.Invalid) {
			b.setAside(nodes, err)
			continue
		}
		if err != nil {
			return Built{}, fmt.Errorf("writing the intent for %d nodes of NodePool %s: %w", len(nodes), nodes[0].NodePool, err)
		}
	}
	if err := b.unplanned(batch.Snapshot, batch.Unplanned); err != nil {
		return Built{}, err
	}
	return b.built, nil
}

// Store stores the intents and the plan that refers to them, up to parallel at the same time (zero means one), and returns the
// plan's reference. After an error, a plan may exist without its intents. It must not be published then.
func (b Built) Store(ctx context.Context, blobs blob.Store, parallel int) (event.Ref, error) {
	var plan event.Ref
	err := blob.CallAll(ctx, len(b.Intents)+1, parallel, func(ctx context.Context, i int) (err error) {
		if i == len(b.Intents) {
			if plan, err = blob.PutNew(ctx, blobs, planning.PlanKind, b.Plan); err != nil {
				return fmt.Errorf("storing the plan: %w", err)
			}
			return nil
		}
		return storeIntent(ctx, blobs, b.Intents[i], b.Plan.Intents[i].Ref)
	})
	if err != nil {
		return event.Ref{}, err
	}
	return plan, nil
}

// storeIntent stores an intent, which must get the reference that the plan has.
func storeIntent(ctx context.Context, blobs blob.Store, intent Intent, planned event.Ref) error {
	ref, err := blob.PutNew(ctx, blobs, Kind, intent)
	if err == nil && ref != planned {
		err = fault.F("comparing its reference", fault.Bug, "it was stored as %s, but the plan refers to %s", ref.Digest, planned.Digest)
	}
	if err != nil {
		return fmt.Errorf("storing intent %s of the plan: %w", intent.ID, err)
	}
	return nil
}

// Claims returns the number of NodeClaims in the plan.
func (b Built) Claims() int {
	count := 0
	for i := range b.Intents {
		count += len(b.Intents[i].Claims)
	}
	return count
}

type builder struct {
	batch planning.Batch
	ref   event.Ref
	// cause is the text from which the intents' ids derive.
	cause     string
	catalogue catalog.Catalogue
	machines  machines
	addresses addresses
	// existing is the NodeClaim of the intent if a user created it.
	existing *karpenter.NodeClaim
	built    Built
}

// add writes one intent and its NodeClaims. The id derives from the cause and the index, and the names
// of the NodeClaims from the id. The launcher derives them again (services/launcher/internal/owner).
func (b *builder) add(nodes []planning.PlannedNode) error {
	g, err := b.recipe(nodes[0])
	if err != nil {
		return err
	}
	intent, err := g.intent(len(nodes))
	if err != nil {
		return err
	}
	cluster := event.Cluster{Name: b.batch.Snapshot.Cluster, UID: b.batch.Snapshot.UID}
	if intent.ID = IntentID(cluster, b.cause, len(b.built.Intents)); b.existing != nil {
		intent.ID = UnplannedIntentID(cluster, b.cause, len(b.built.Intents), b.existing.Name)
	}
	intent.Fleet.Token = intent.ID
	intent.Fleet.TagSets = fleetTagSets(ownerTags(g.cluster.Name, g.pool.Name, g.class), intent.ID)
	for slot := range nodes {
		if b.existing != nil {
			intent.Claims = append(intent.Claims, b.existing.Name)
			break
		}
		intent.Claims = append(intent.Claims, ClaimName(g.pool.Name, intent.ID, slot))
	}
	ref, _, err := blob.Encode(Kind, intent)
	if err != nil {
		return err
	}
	from := origin{outbox: b.batch.Outbox, seq: b.batch.Seq, intent: intent, ref: ref}
	planned := planning.PlannedIntent{ID: intent.ID, Ref: ref, NodePool: g.pool.Name}
	common, err := g.share(from)
	if err != nil {
		return err
	}
	for slot := range nodes {
		planned.Claims = append(planned.Claims, g.claim(&nodes[slot], common, intent.Claims[slot]))
	}
	b.accept(intent, planned, nodes)
	b.account(g, intent, nodes)
	return nil
}

// account subtracts the addresses of an accepted intent from its subnets, so that the next intent uses
// subnets with more free addresses, and collects the warnings.
func (b *builder) account(g *recipe, intent Intent, nodes []planning.PlannedNode) {
	count := int64(0)
	for _, node := range nodes {
		count += b.batch.Snapshot.CountAddresses(int64(len(node.Pods)))
	}
	named := map[string]bool{}
	for _, config := range intent.Fleet.Configs {
		for _, o := range config.Overrides {
			if !named[o.SubnetID] {
				named[o.SubnetID] = true
				b.addresses.take(o.SubnetID, count)
			}
		}
	}
	for _, warning := range g.warnings(intent) {
		if !slices.Contains(b.built.Plan.Warnings, warning) {
			b.built.Plan.Warnings = append(b.built.Plan.Warnings, warning)
		}
	}
}

// accept adds a complete intent to the plan.
func (b *builder) accept(intent Intent, planned planning.PlannedIntent, nodes []planning.PlannedNode) {
	b.built.Intents = append(b.built.Intents, intent)
	b.built.Plan.Intents = append(b.built.Plan.Intents, planned)
	for slot, node := range nodes {
		b.built.Plan.PricePerHour += planned.Claims[slot].PricePerHour
		for _, pod := range node.Pods {
			b.built.Plan.Nominations = append(b.built.Plan.Nominations,
				planning.Nomination{Namespace: pod.Namespace, Pod: pod.Pod, Claim: intent.Claims[slot], Devices: pod.Devices})
		}
	}
}

// setAside adds the pods of nodes to the unplaced pods, by namespace, and adds a warning for the node
// class: it looks ready, but its request is invalid.
func (b *builder) setAside(nodes []planning.PlannedNode, cause error) {
	warning := planning.Warning{NodePool: nodes[0].NodePool, NodeClass: nodes[0].NodeClass, Rule: WarnUnwritable, Message: cause.Error()}
	if !slices.Contains(b.built.Plan.Warnings, warning) {
		b.built.Plan.Warnings = append(b.built.Plan.Warnings, warning)
	}
	why := []planning.Rejection{{NodePool: nodes[0].NodePool, Rule: planning.RuleNotReady, Detail: cause.Error()}}
	for _, node := range nodes {
		for _, pod := range node.Pods {
			all := b.built.Plan.Unplaced
			if last := len(all) - 1; last >= 0 && all[last].Namespace == pod.Namespace && len(all[last].Rejections) == 1 &&
				all[last].Rejections[0] == why[0] {
				all[last].Pods = append(all[last].Pods, pod.Pod)
				continue
			}
			b.built.Plan.Unplaced = append(all, planning.UnplacedPods{Namespace: pod.Namespace, Pods: []planning.PodRef{pod.Pod}, Rejections: why})
		}
	}
}
