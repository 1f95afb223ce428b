package sim

import (
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

// limits are those of NodePools. Nodes that stay count against them: neither the node
// nor its claim is being removed, and no replacement of it has begun. Where they are
// strict, nodes count until they are gone.
type limits struct {
	pools  map[string]corev1.ResourceList
	strict bool
	// back is when the replacement of a claim was rolled back: the claim stays again, beside
	// what was admitted in the meantime.
	back map[string]time.Time
	// applying is the outbox that was written last, in its state of applying.
	applying outbox
}

// admission is how long an admission takes at most from its count to its swap.
const admission = 2 * time.Minute

// count is what counts against the limits of a pool.
type count struct{ cpu, nodes int64 }

func (c *count) add(cpu int64) { c.cpu, c.nodes = c.cpu+cpu, c.nodes+1 }

// hold reports a limit that is exceeded.
func (l *limits) hold(c *checker, pool string, have count, when string) {
	limit := l.pools[pool]
	if most := limit.Cpu().Value(); have.cpu > most {
		c.violate("no limit is exceeded", "pool %s has %d CPUs%s, and %d is the limit", pool, have.cpu, when, most)
	}
	if most := limit[karpenter.ResourceNodes]; have.nodes > most.Value() {
		c.violate("no limit is exceeded", "pool %s has %d nodes%s, and %d is the limit", pool, have.nodes, when, most.Value())
	}
}

// withinLimits: what runs in a pool stays within its limits, at any instant.
func (c *checker) withinLimits(records []memcloud.Record) {
	for pool, have := range c.running(records, func(claim *karpenter.NodeClaim) bool { return !c.limits.back[claim.Name].IsZero() }) {
		c.limits.hold(c, pool, have, "")
	}
}

// running adds up the instances of each pool that count. Those of the claims to forgive
// do not.
func (c *checker) running(records []memcloud.Record, forgive func(*karpenter.NodeClaim) bool) map[string]count {
	out := map[string]count{}
	for pool := range c.limits.pools {
		out[pool] = count{}
	}
	for _, r := range records {
		claims := c.claimsOf(r)
		gone := !slices.ContainsFunc(claims, func(claim *karpenter.NodeClaim) bool { return !leaves(claim) && !forgive(claim) })
		pool := r.Tags["karpenter.sh/nodepool"]
		if _, limited := out[pool]; !r.Gone.IsZero() || !limited || !c.limits.strict && len(claims) > 0 && gone {
			continue
		}
		sum := out[pool]
		sum.add(c.vcpu[r.Type])
		out[pool] = sum
	}
	return out
}

// claimsOf are the claims that an instance is, or may become, the node of.
func (c *checker) claimsOf(r memcloud.Record) (unbound []*karpenter.NodeClaim) {
	for _, claim := range c.seen {
		if strings.HasSuffix(claim.Status.ProviderID, "/"+r.ID) {
			return []*karpenter.NodeClaim{claim}
		}
		if claim.Status.ProviderID == "" && claim.Annotations[intentTag] == r.Tags[intentTag] {
			unbound = append(unbound, claim)
		}
	}
	return unbound
}

// leaves reports whether a claim is being removed or replaced.
func leaves(claim *karpenter.NodeClaim) bool {
	_, acts := acting(claim)
	return acts || claim.DeletionTimestamp != nil || claim.Status.Conditions.True("InstanceTerminating")
}

// follow takes one write: what is admitted fits beside what stays at that moment.
func (l *limits) follow(c *checker, e memcluster.Effect) {
	if before, ok := e.Before.(*karpenter.NodeClaim); ok {
		if after, _ := e.After.(*karpenter.NodeClaim); after != nil && leaves(before) && !leaves(after) {
			l.back[after.Name] = e.At
			c.reached["counts against limits again"]++
		}
	}
	object, ok := e.After.(*corev1.ConfigMap)
	var now outbox
	if !ok || e.Kind != cluster.ConfigMaps || object.Name != "joist-outbox" || json.Unmarshal([]byte(object.Data["outbox.json"]), &now) != nil {
		return
	}
	if now.State == "applying" && now.Seq != l.applying.Seq {
		l.applying = now
		l.admitted(c, e.At)
	}
}

// admitted: the claims that an outbox lets be created fit beside those that stay.
func (l *limits) admitted(c *checker, at time.Time) {
	sums, all, fresh := map[string]count{}, map[string]count{}, map[string]bool{}
	for _, claim := range c.sagas.claims {
		pool := claim.Labels["karpenter.sh/nodepool"]
		sums[pool], all[pool] = l.with(claim, sums[pool], at), l.alone(claim, all[pool])
	}
	for name, claim := range c.planned(l.applying.Plan) {
		if !slices.Contains(l.applying.Claims, name) || c.sagas.claims[name] != nil {
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
			l.hold(c, pool, sums[pool], " when a plan is admitted")
			if nodes := limit[karpenter.ResourceNodes]; all[pool].cpu > limit.Cpu().Value() || all[pool].nodes > nodes.Value() {
				c.reached["admitted in place of what leaves"]++
			}
		}
	}
}

// with adds a claim if it counts when a plan is admitted.
func (l *limits) with(claim *karpenter.NodeClaim, sum count, at time.Time) count {
	lately := !l.back[claim.Name].IsZero() && at.Sub(l.back[claim.Name]) < admission
	if !l.strict && (leaves(claim) || lately) {
		return sum
	}
	return l.alone(claim, sum)
}

// alone adds what a claim has, or the most that it may become.
func (l *limits) alone(claim *karpenter.NodeClaim, sum count) count {
	has := claim.Status.Capacity
	if len(has) == 0 {
		_ = json.Unmarshal([]byte(claim.Annotations["joist.sh/ceiling"]), &has)
	}
	sum.add(has.Cpu().Value())
	return sum
}

// plannedClaim is what the plan says of a claim to be.
type plannedClaim struct {
	pool string
	cpu  int64
}

// planned reads the claims of a plan out of the store.
func (c *checker) planned(digest string) map[string]plannedClaim {
	var plan struct {
		Intents []struct {
			NodePool string `json:"nodePool"`
			Claims   []struct {
				Object struct {
					Metadata struct {
						Name string `json:"name"`
					} `json:"metadata"`
				} `json:"object"`
				Ceiling corev1.ResourceList `json:"ceiling"`
			} `json:"claims"`
		} `json:"intents"`
	}
	out := map[string]plannedClaim{}
	if !c.document("plans/"+digest, &plan) {
		return out
	}
	for _, intent := range plan.Intents {
		for _, claim := range intent.Claims {
			out[claim.Object.Metadata.Name] = plannedClaim{intent.NodePool, claim.Ceiling.Cpu().Value()}
		}
	}
	return out
}
