package sim

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// limitChecker checks the limits of NodePools. A node counts while neither it nor its NodeClaim is being removed
// and no replacement has begun; with strict limits it counts until it is deleted.
type limitChecker struct {
	pools  map[string]corev1.ResourceList
	strict bool
	// returnedAt is when the replacement of a claim was rolled back: the claim counts again,
	// in addition to claims that were admitted meanwhile.
	returnedAt map[string]time.Time
	// lastAdmission is the outbox that was written last, in its state of applying.
	lastAdmission outboxState
	// batch is the outbox in its last state of sent.
	batch outboxState
}

// admission is how long an admission takes at most from its count to its swap.
const admission = 2 * time.Minute

// sumCounts is what counts against the limits of a pool.
type sumCounts struct{ cpu, nodes int64 }

func (c *sumCounts) add(cpu int64) { c.cpu, c.nodes = c.cpu+cpu, c.nodes+1 }

// checkUsage reports an exceeded limit.
func (l *limitChecker) checkUsage(c *checker, pool string, have sumCounts, when string) {
	limit := l.pools[pool]
	if most := limit.Cpu().Value(); have.cpu > most {
		c.reportViolation("no NodePool limit is exceeded", "pool %s has %d CPUs%s, and %d is the limit", pool, have.cpu, when, most)
	}
	if most := limit[karpenter.ResourceNodes]; have.nodes > most.Value() {
		c.reportViolation("no NodePool limit is exceeded", "pool %s has %d nodes%s, and %d is the limit", pool, have.nodes, when, most.Value())
	}
}

// checkLimits checks that running instances are within the limits of their NodePools. In hostile seeds without strict
// limits, an instance that EC2 is terminating counts only while a NodeClaim that stays has it: if a forged message ends the
// NodeClaim of a drained node early, its instance does not count again.
func (c *checker) checkLimits(records []memcloud.Record) {
	for pool, have := range c.sumRunning(records, func(claim *karpenter.NodeClaim) bool { return !c.limits.returnedAt[claim.Name].IsZero() }) {
		c.limits.checkUsage(c, pool, have, "")
	}
}

// sumRunning sums the instances of each NodePool that count. NodeClaims for which forgive is true do not count. Of the instances of an intent
// that are not bound yet, as many count as the intent has NodeClaims that stay: the others are for NodeClaims that are being removed.
func (c *checker) sumRunning(records []memcloud.Record, forgive func(*karpenter.NodeClaim) bool) map[string]sumCounts {
	out := map[string]sumCounts{}
	for pool := range c.limits.pools {
		out[pool] = sumCounts{}
	}
	counted := map[string]int{} // By instance if it is bound, else by intent.
	for _, r := range c.listLimited(records) {
		claims, key, staying := c.claimsOfInstance(r), r.Tags[intentTag], 0
		if len(c.boundClaims[r.ID]) > 0 {
			key = r.ID
		}
		for _, claim := range claims {
			if !c.leaving[claim] && !forgive(claim) {
				staying++
			}
		}
		if !c.limits.strict && counted[key] >= staying && (len(claims) > 0 || c.hostile != nil && !r.Ended.IsZero()) {
			continue
		}
		counted[key]++
		pool := r.Tags["karpenter.sh/nodepool"]
		sum := out[pool]
		sum.add(c.vcpu[r.Type])
		out[pool] = sum
	}
	return out
}

// listLimited returns the instances of NodePools with limits that are not terminated, the largest first.
func (c *checker) listLimited(records []memcloud.Record) []*memcloud.Record {
	var out []*memcloud.Record
	for i := range records {
		if _, limited := c.limits.pools[records[i].Tags["karpenter.sh/nodepool"]]; limited && records[i].Gone.IsZero() {
			out = append(out, &records[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *memcloud.Record) int { return cmp.Compare(c.vcpu[b.Type], c.vcpu[a.Type]) })
	return out
}

// claimsOfInstance returns the NodeClaims that the instance belongs to or may be bound to.
func (c *checker) claimsOfInstance(r *memcloud.Record) []*karpenter.NodeClaim {
	if bound := c.boundClaims[r.ID]; len(bound) > 0 {
		return bound
	}
	return c.unboundClaims[r.Tags[intentTag]]
}

// indexClaims sets lastClaims and what is derived from them.
func (c *checker) indexClaims(claims []*karpenter.NodeClaim) {
	c.lastClaims = claims
	clear(c.boundClaims)
	clear(c.unboundClaims)
	clear(c.leaving)
	for i, claim := range claims {
		c.leaving[claim] = isLeaving(claim)
		if claim.Status.ProviderID == "" {
			intent := claim.Annotations[intentTag]
			c.unboundClaims[intent] = append(c.unboundClaims[intent], claim)
			continue
		}
		slash := strings.LastIndexByte(claim.Status.ProviderID, '/')
		if id := claim.Status.ProviderID[slash+1:]; slash >= 0 && c.boundClaims[id] == nil {
			c.boundClaims[id] = claims[i : i+1 : i+1]
		}
	}
}

// isLeaving reports whether a NodeClaim is being removed or replaced.
func isLeaving(claim *karpenter.NodeClaim) bool {
	_, acts := confirmedProposal(claim)
	return acts || claim.DeletionTimestamp != nil || claim.Status.Conditions.IsTrue("InstanceTerminating")
}

// observeWrite checks the admission of a plan when the outbox is written.
func (l *limitChecker) observeWrite(c *checker, e memcluster.Effect) {
	if before, ok := e.Before.(*karpenter.NodeClaim); ok {
		if after, _ := e.After.(*karpenter.NodeClaim); after != nil && isLeaving(before) && !isLeaving(after) {
			l.returnedAt[after.Name] = e.At
			c.occurrences["counted against limits again"]++
		}
	}
	object, ok := e.After.(*corev1.ConfigMap)
	var now outboxState
	if !ok || e.Kind != cluster.ConfigMaps || object.Name != "joist-outbox" || json.Unmarshal([]byte(object.Data["outbox.json"]), &now) != nil {
		return
	}
	if now.State == "sent" {
		l.batch = now
	}
	if now.State == "applying" && now.Seq != l.lastAdmission.Seq {
		l.lastAdmission = now
		l.checkAdmission(c, e.At)
		if l.batch.Seq == now.Seq {
			c.checkPlannedDevices(l.batch.Batch.Digest, now.Plan)
			c.checkPlannedReservations(l.batch.Batch.Digest, now.Plan)
			c.checkDefaultSpread(l.batch.Batch.Digest)
		}
	}
}

// checkAdmission checks that the admitted NodeClaims and the remaining ones fit into the limits.
func (l *limitChecker) checkAdmission(c *checker, at time.Time) {
	sums, all, fresh := map[string]sumCounts{}, map[string]sumCounts{}, map[string]bool{}
	for _, claim := range c.disruptions.claims {
		pool := claim.Labels["karpenter.sh/nodepool"]
		sums[pool], all[pool] = l.addIfCounted(claim, sums[pool], at), l.addClaim(claim, all[pool])
	}
	for name, claim := range c.readPlannedClaims(l.lastAdmission.Plan) {
		if !slices.Contains(l.lastAdmission.Claims, name) || c.disruptions.claims[name] != nil {
			continue
		}
		fresh[claim.pool] = true
		sum, most := sums[claim.pool], all[claim.pool]
		sum.add(claim.cpu)
		most.add(claim.cpu)
		sums[claim.pool], all[claim.pool] = sum, most
	}
	for pool := range fresh {
		if limit, limited := l.pools[pool]; limited {
			l.checkUsage(c, pool, sums[pool], " when a plan is admitted")
			if nodes := limit[karpenter.ResourceNodes]; all[pool].cpu > limit.Cpu().Value() || all[pool].nodes > nodes.Value() {
				c.occurrences["admitted in place of leaving nodes"]++
			}
		}
	}
}

// addIfCounted adds a NodeClaim if it counts when a plan is admitted.
func (l *limitChecker) addIfCounted(claim *karpenter.NodeClaim, sum sumCounts, at time.Time) sumCounts {
	lately := !l.returnedAt[claim.Name].IsZero() && at.Sub(l.returnedAt[claim.Name]) < admission
	if !l.strict && (isLeaving(claim) || lately) {
		return sum
	}
	return l.addClaim(claim, sum)
}

// addClaim adds the capacity of a NodeClaim, or its ceiling before launch.
func (l *limitChecker) addClaim(claim *karpenter.NodeClaim, sum sumCounts) sumCounts {
	has := claim.Status.Capacity
	if len(has) == 0 {
		_ = json.Unmarshal([]byte(claim.Annotations["joist.sh/ceiling"]), &has)
	}
	sum.add(has.Cpu().Value())
	return sum
}

// plannedClaim is the NodePool, CPU ceiling and capacity reservation of a NodeClaim in a plan.
type plannedClaim struct {
	pool, reservation string
	cpu               int64
}

// readPlannedClaims reads the NodeClaims of a plan from the blob store.
func (c *checker) readPlannedClaims(digest string) map[string]plannedClaim {
	var plan struct {
		Intents []struct {
			NodePool string `json:"nodePool"`
			Claims   []struct {
				Object struct {
					Metadata struct {
						Name string `json:"name"`
					} `json:"metadata"`
					Spec karpenter.NodeClaimSpec `json:"spec"`
				} `json:"object"`
				Ceiling corev1.ResourceList `json:"ceiling"`
			} `json:"claims"`
		} `json:"intents"`
	}
	out := map[string]plannedClaim{}
	if !c.readDocument("plans/"+digest, &plan) {
		return out
	}
	for _, intent := range plan.Intents {
		for _, claim := range intent.Claims {
			out[claim.Object.Metadata.Name] = plannedClaim{intent.NodePool, requiredReservation(claim.Object.Spec), claim.Ceiling.Cpu().Value()}
		}
	}
	return out
}
