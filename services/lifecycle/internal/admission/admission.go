// Package admission decides which intents of a plan become NodeClaims: it counts what
// exists against the NodePools' limits and against the price limit, and admits whole
// intents only. It also keeps the list of unavailable offerings, in one ConfigMap
// that changes by compare-and-swap and that the watcher puts into every batch.
//
// AdmitPlan is pure, and its caller makes it serial: the answer takes effect only by a
// swap of the outbox that was read before the counting began, so that two admissions
// never use the same count.
package admission

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// AdmittedAnnotation marks a claim that came through the door and whose plan is
// done: only such a claim is launched. Its value is the time, RFC 3339.
const AdmittedAnnotation = launchspec.AdmittedAnnotation

// Refusal is an intent that did not pass.
type Refusal struct {
	Intent   string
	NodePool string
	Reason   string
}

// Admission is the door's answer.
type Admission struct {
	// Claims are all names that may be launched after this plan: the admitted
	// intents' own, and those that an abandoned plan left behind with all claims of
	// their intent. Claims of an intent of which some are missing are left out, and
	// deleted: its request is for all of them.
	Claims []string
	// Intents are the ids that passed.
	Intents []string
	Refused []Refusal
}

// Admitter is what holds for all NodePools together.
type Admitter struct {
	// PriceLimit is what all claims may cost together, in US dollars an hour; nil is no
	// limit.
	PriceLimit *float64
	// Leaving names claims that the planned ones replace. Like all that leave, they count
	// against limits only where their pool counts nodes until they are gone.
	Leaving []string
}

// AdmitPlan decides which intents of a plan pass, in the plan's order. An intent
// passes whole or not at all, because its fleet call is for all of its claims.
func (d Admitter) AdmitPlan(plan planning.Plan, pools []*karpenter.NodePool, claims []*karpenter.NodeClaim) Admission {
	var a Admission
	claims = slices.DeleteFunc(slices.Clone(claims), func(c *karpenter.NodeClaim) bool { return launches(plan, c) })
	usage, ledger := d.usage(pools, claims), newLedger(d.PriceLimit, claims, plan)
	exists, present := map[string]bool{}, CountPresent(claims)
	for _, c := range claims {
		exists[c.Name] = true
		if leftBehind(c, plan) && present.Complete(c) {
			a.Claims = append(a.Claims, c.Name)
		}
	}
	for _, intent := range plan.Intents {
		reason := refuse(intent, pools, usage[intent.NodePool], ledger, exists)
		if reason != "" {
			a.Refused = append(a.Refused, Refusal{Intent: intent.ID, NodePool: intent.NodePool, Reason: reason})
			continue
		}
		a.Intents = append(a.Intents, intent.ID)
		for _, c := range intent.Claims {
			a.Claims = append(a.Claims, c.Object.Name)
			if !exists[c.Object.Name] {
				usage[intent.NodePool] = add(usage[intent.NodePool], c.Ceiling)
			}
		}
		price, _ := asked(intent, exists)
		ledger.add(intent.NodePool, price)
	}
	slices.Sort(a.Claims)
	a.Claims = slices.Compact(a.Claims)
	return a
}

// launches reports whether the plan launches a claim that a person created. Until then it
// counts for nothing, and the plan says what it may become.
func launches(plan planning.Plan, c *karpenter.NodeClaim) bool {
	return slices.ContainsFunc(plan.Intents, func(intent planning.PlannedIntent) bool {
		return slices.ContainsFunc(intent.Claims, func(planned planning.PlannedClaim) bool {
			return planned.Object.UID != "" && planned.Object.UID == c.UID && launchspec.WaitsUnplanned(c)
		})
	})
}

// refuse says why an intent may not pass, or "".
func refuse(intent planning.PlannedIntent, pools []*karpenter.NodePool, used corev1.ResourceList, ledger *ledger, exists map[string]bool) string {
	for _, c := range intent.Claims {
		if c.Object.UID != "" && exists[c.Object.Name] {
			return "NodeClaim " + c.Object.Name + " is launched already, or going"
		}
	}
	pool := find(pools, intent.NodePool)
	if intent.NodePool == "" && len(intent.Claims) == 1 && intent.Claims[0].Object.UID != "" {
		pool = &karpenter.NodePool{} // A person need not name a NodePool: no limit but the cluster's holds.
	}
	if pool == nil || pool.DeletionTimestamp != nil {
		return "the NodePool is gone or going"
	}
	wanted := corev1.ResourceList{}
	for _, c := range intent.Claims {
		if !exists[c.Object.Name] {
			wanted = add(wanted, c.Ceiling)
		}
	}
	total := add(used, wanted)
	for name, limit := range pool.Spec.Limits {
		if sum, ok := total[name]; ok && sum.Cmp(limit) > 0 && !isZero(wanted[name]) {
			return fmt.Sprintf("limit %s=%s would be exceeded: %s with this intent", name, limit.String(), sum.String())
		}
	}
	return ledger.refuse(intent, pool, exists)
}

// leftBehind reports whether the claim comes from an earlier plan that never
// got done. A claim without our batch annotation is not of a plan.
func leftBehind(c *karpenter.NodeClaim, plan planning.Plan) bool {
	outbox, seq, ok := BatchOf(c)
	if !ok || c.DeletionTimestamp != nil || IsAdmitted(c) {
		return false
	}
	return outbox == plan.Outbox && seq < plan.Seq
}

// IsAdmitted reports whether the claim may be launched.
func IsAdmitted(c *karpenter.NodeClaim) bool { return c.Annotations[AdmittedAnnotation] != "" }

// BatchOf reads which batch the claim was planned in.
func BatchOf(c *karpenter.NodeClaim) (outbox string, seq uint64, ok bool) {
	outbox, number, found := strings.Cut(c.Annotations[launchspec.BatchAnnotation], "/")
	if !found {
		return "", 0, false
	}
	seq, err := strconv.ParseUint(number, 10, 64)
	return outbox, seq, err == nil
}

// BatchID is what the claims of a batch say for Batch to read.
func BatchID(outbox string, seq uint64) string { return fmt.Sprintf("%s/%d", outbox, seq) }

// usage sums what each pool's claims count for against its limits.
func (d Admitter) usage(pools []*karpenter.NodePool, claims []*karpenter.NodeClaim) map[string]corev1.ResourceList {
	usage := map[string]corev1.ResourceList{}
	for _, c := range claims {
		if name := c.Labels[karpenter.NodePoolLabelKey]; d.counts(find(pools, name), c) {
			usage[name] = add(usage[name], Footprint(c))
		}
	}
	return usage
}

// counts reports whether a claim counts against the limits of its pool. One that is
// being removed or replaced counts only where the pool counts nodes until they are
// gone, as the planner has it.
func (d Admitter) counts(pool *karpenter.NodePool, c *karpenter.NodeClaim) bool {
	leaves := planning.Leaves(c) || slices.Contains(d.Leaving, c.Name)
	return !leaves || pool != nil && planning.CountsLeaving(pool)
}

// find is the pool of a name, or nil.
func find(pools []*karpenter.NodePool, name string) *karpenter.NodePool {
	i := slices.IndexFunc(pools, func(p *karpenter.NodePool) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return pools[i]
}

// Footprint is what one claim counts for, "nodes" included: its capacity once it is
// launched, and before that the most that it may turn out to be. Money is counted apart: it
// is bought for what it is, and not for what its type has.
func Footprint(c *karpenter.NodeClaim) corev1.ResourceList {
	footprint := corev1.ResourceList{}
	if len(c.Status.Capacity) > 0 {
		footprint = add(footprint, c.Status.Capacity)
	} else {
		footprint = add(footprint, ceilingOf(c))
		delete(footprint, planning.PriceResource)
	}
	footprint[karpenter.ResourceNodes] = resource.MustParse("1")
	return footprint
}

// ceilingOf is the most that a claim may turn out to be. An annotation that does not
// parse counts for nothing but a node; the planner wrote it, and the plan's digest
// vouches for it.
func ceilingOf(c *karpenter.NodeClaim) corev1.ResourceList {
	var out corev1.ResourceList
	if json.Unmarshal([]byte(c.Annotations[launchspec.CeilingAnnotation]), &out) != nil {
		return nil
	}
	return out
}

func add(a, b corev1.ResourceList) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for name, q := range a {
		sum[name] = q.DeepCopy()
	}
	for name, q := range b {
		total := sum[name]
		total.Add(q)
		sum[name] = total
	}
	return sum
}

func isZero(q resource.Quantity) bool { return q.IsZero() }
