// Package admission decides which intents of a plan become NodeClaims. It counts existing claims
// against the limits of NodePools and the price limit, and admits whole intents only. It also
// maintains the list of unavailable offerings, in one ConfigMap that is changed by compare-and-swap
// and that the watcher adds to every batch.
//
// AdmitPlan is pure. Its caller serializes admissions: the result takes effect only by a swap of
// the outbox that was read before counting, so two admissions never use the same count.
package admission

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// AdmittedAnnotation marks a claim that was admitted and whose plan is executed: only such a
// claim is launched. Its value is the time, RFC 3339.
const AdmittedAnnotation = launchspec.AdmittedAnnotation

// Refusal is an intent that was not admitted.
type Refusal struct {
	Intent   string
	NodePool string
	Reason   string
}

// Admission is the result of AdmitPlan.
type Admission struct {
	// Claims are the names of all claims that may be launched after this plan: the claims of the
	// admitted intents, and claims of an abandoned plan whose intents are complete. Claims of
	// incomplete intents are omitted and deleted, because a launch request is for all claims of its
	// intent.
	Claims []string
	// Intents are the IDs of the admitted intents.
	Intents []string
	Refused []Refusal
}

// Admitter has the inputs that concern all NodePools.
type Admitter struct {
	// PriceLimit is the highest price of all claims together, in US dollars per hour. Nil is no
	// limit.
	PriceLimit *float64
	// Leaving names claims that the planned ones replace. Like all claims that are being removed,
	// they count against limits only if the pool's limits are strict.
	Leaving []string
}

// MaxClaims is how many NodeClaims of a plan are admitted at most. The outbox lists each name twice and its UID, and a
// ConfigMap has at most 1 MiB. The pods of the other intents stay pending, and the next batch plans them again.
const MaxClaims = 5000

// AdmitPlan decides which intents of a plan are admitted, in the plan's order. An intent is
// admitted as a whole, because its CreateFleet call is for all of its claims.
func (d Admitter) AdmitPlan(plan planning.Plan, pools []*karpenter.NodePool, claims []*karpenter.NodeClaim) Admission {
	var a Admission
	claims = slices.DeleteFunc(slices.Clone(claims), func(c *karpenter.NodeClaim) bool { return !c.IsManaged() || isLaunchedBy(plan, c) })
	usage, ledger := d.sumUsage(pools, claims), newLedger(d.PriceLimit, claims, plan)
	exists, present := map[string]bool{}, CountPresent(claims)
	for _, c := range claims {
		exists[c.Name] = true
		if len(a.Claims) < MaxClaims && isLeftBehind(c, plan) && present.Complete(c) && fitsLimits(c, pools, usage, ledger) {
			a.Claims = append(a.Claims, c.Name)
		}
	}
	for _, intent := range plan.Intents {
		reason := refusalReason(intent, pools, usage[intent.NodePool], ledger, exists)
		if reason == "" && len(a.Claims)+len(intent.Claims) > MaxClaims {
			reason = fmt.Sprintf("the plan has more than %d NodeClaims: the pods of this intent are planned again in the next batch", MaxClaims)
		}
		if reason != "" {
			a.Refused = append(a.Refused, Refusal{Intent: intent.ID, NodePool: intent.NodePool, Reason: reason})
			continue
		}
		a.Intents = append(a.Intents, intent.ID)
		for _, c := range intent.Claims {
			a.Claims = append(a.Claims, c.Object.Name)
			if !exists[c.Object.Name] {
				usage[intent.NodePool] = karpenter.SumResources(usage[intent.NodePool], c.Ceiling)
			}
		}
		price, _ := plannedPrice(intent, exists)
		ledger.addPrice(intent.NodePool, price)
	}
	slices.Sort(a.Claims)
	a.Claims = slices.Compact(a.Claims)
	return a
}

// isLaunchedBy reports whether the plan launches a user-created claim. Until then the claim counts
// as nothing, and the plan states its ceiling.
func isLaunchedBy(plan planning.Plan, c *karpenter.NodeClaim) bool {
	return slices.ContainsFunc(plan.Intents, func(intent planning.PlannedIntent) bool {
		return slices.ContainsFunc(intent.Claims, func(planned planning.PlannedClaim) bool {
			return planned.Object.UID != "" && planned.Object.UID == c.UID && launchspec.WaitsUnplanned(c)
		})
	})
}

// refusalReason returns why an intent may not be admitted, or "".
func refusalReason(intent planning.PlannedIntent, pools []*karpenter.NodePool, used corev1.ResourceList, ledger *ledger, exists map[string]bool) string {
	for _, c := range intent.Claims {
		if c.Object.UID != "" && exists[c.Object.Name] {
			return "NodeClaim " + c.Object.Name + " is already launched or being deleted"
		}
	}
	pool, reason := findLaunchingPool(intent, pools)
	if reason != "" {
		return reason
	}
	wanted := corev1.ResourceList{}
	for _, c := range intent.Claims {
		if !exists[c.Object.Name] {
			wanted = karpenter.SumResources(wanted, c.Ceiling)
		}
	}
	total := karpenter.SumResources(used, wanted)
	for _, name := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
		limit := pool.Spec.Limits[name]
		if sum, ok := total[name]; ok && sum.Cmp(limit) > 0 && !isZero(wanted[name]) {
			return fmt.Sprintf("limit %s=%s would be exceeded: %s with this intent", name, limit.String(), sum.String())
		}
	}
	return ledger.refusalReason(intent, pool, exists)
}

// findLaunchingPool returns the NodePool of an intent, or why it may not launch nodes. A NodeClaim that a user
// created needs no NodePool: the result is empty, because only the cluster's limit applies.
func findLaunchingPool(intent planning.PlannedIntent, pools []*karpenter.NodePool) (pool *karpenter.NodePool, reason string) {
	if intent.NodePool == "" && len(intent.Claims) == 1 && intent.Claims[0].Object.UID != "" {
		return &karpenter.NodePool{}, ""
	}
	pool = findPool(pools, intent.NodePool)
	switch {
	case pool == nil || pool.DeletionTimestamp != nil:
		return nil, "the NodePool does not exist or is being deleted"
	case !pool.IsManaged():
		return nil, "the NodePool belongs to another provider, because its node class is not an EC2NodeClass"
	default:
		return pool, ""
	}
}

// isLeftBehind reports whether the claim belongs to an earlier plan that was not completed. A
// claim without the batch annotation belongs to no plan.
func isLeftBehind(c *karpenter.NodeClaim, plan planning.Plan) bool {
	outbox, seq, ok := BatchOf(c)
	if !ok || c.DeletionTimestamp != nil || IsAdmitted(c) {
		return false
	}
	return outbox == plan.Outbox && seq < plan.Seq
}

// fitsLimits reports whether the limits allow the launch of an existing claim, which the usage and the ledger contain. A paused replica may create
// claims of an abandoned plan after a later plan was admitted in their place.
func fitsLimits(c *karpenter.NodeClaim, pools []*karpenter.NodePool, usage map[string]corev1.ResourceList, ledger *ledger) bool {
	name := c.Labels[karpenter.NodePoolLabelKey]
	pool := findPool(pools, name)
	if pool == nil {
		pool = &karpenter.NodePool{}
	}
	used, own := usage[name], Footprint(c)
	for resource, limit := range pool.Spec.Limits {
		if sum, ok := used[resource]; ok && sum.Cmp(limit) > 0 && !isZero(own[resource]) {
			return false
		}
	}
	return ledger.fitsLimits(name, pool)
}

// IsAdmitted reports whether the claim may be launched.
func IsAdmitted(c *karpenter.NodeClaim) bool { return c.Annotations[AdmittedAnnotation] != "" }

// BatchOf returns the outbox and the sequence number with which the claim was planned.
func BatchOf(c *karpenter.NodeClaim) (outbox string, seq uint64, ok bool) {
	outbox, number, found := strings.Cut(c.Annotations[launchspec.BatchAnnotation], "/")
	if !found {
		return "", 0, false
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	return outbox, seq, err == nil
}

// BatchID returns the value of the batch annotation, which BatchOf reads.
func BatchID(outbox string, seq uint64) string { return fmt.Sprintf("%s/%d", outbox, seq) }

// sumUsage sums the usage of each pool's claims that counts against its limits.
func (d Admitter) sumUsage(pools []*karpenter.NodePool, claims []*karpenter.NodeClaim) map[string]corev1.ResourceList {
	usage := map[string]corev1.ResourceList{}
	for _, c := range claims {
		if name := c.Labels[karpenter.NodePoolLabelKey]; d.countsAgainstLimits(findPool(pools, name), c) {
			usage[name] = karpenter.SumResources(usage[name], Footprint(c))
		}
	}
	return usage
}

// countsAgainstLimits reports whether a claim counts against its pool's limits. A claim that is
// being removed or replaced counts only if the pool's limits are strict, as in the planner.
func (d Admitter) countsAgainstLimits(pool *karpenter.NodePool, c *karpenter.NodeClaim) bool {
	leaves := planning.IsClaimBeingRemoved(c) || slices.Contains(d.Leaving, c.Name)
	return !leaves || pool != nil && planning.CountsNodesBeingRemoved(pool)
}

// findPool returns the pool of that name, or nil.
func findPool(pools []*karpenter.NodePool, name string) *karpenter.NodePool {
	i := slices.IndexFunc(pools, func(p *karpenter.NodePool) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return pools[i]
}

// Footprint returns the resources that one claim counts for, including "nodes": its capacity once
// it is launched, and its ceiling before. The price is counted separately.
func Footprint(c *karpenter.NodeClaim) corev1.ResourceList {
	footprint := corev1.ResourceList{}
	if len(c.Status.Capacity) > 0 {
		footprint = karpenter.SumResources(footprint, c.Status.Capacity)
	} else {
		footprint = karpenter.SumResources(footprint, launchspec.ReadCeiling(c))
		delete(footprint, planning.PriceResource)
	}
	footprint[karpenter.ResourceNodes] = resource.MustParse("1")
	return footprint
}

func isZero(q resource.Quantity) bool { return q.IsZero() }
