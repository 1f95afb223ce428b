package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Violation is a promise that was broken, and when.
type Violation struct {
	At      time.Time
	Promise string
	Detail  string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s", v.At.Format("15:04:05.000"), v.Promise, v.Detail)
}

// intentTag is spelled out here: a checker that asked the code under test for
// it would not see it change.
const intentTag = "joist.sh/intent"

// orphanLife is how long an instance may run without a claim.
const orphanLife = 90 * time.Second

// checker holds the promises against the models.
type checker struct {
	world  *embedded.World
	limits limits
	found  []Violation
	// orphaned is since when an instance is without a claim.
	orphaned map[string]time.Time
	// bound is which claim got which provider id; it must never change.
	bound map[string]string
	// wanted is how many claims of each intent there ever were.
	wanted map[string]map[string]bool
	said   map[string]bool
	// reached counts what there was to be judged, by what it is, as proof that there was
	// any.
	reached map[string]int
	// vcpu is what limits count of each type, and seen the claims as they were at
	// a version of the API server.
	vcpu    map[string]int64
	seen    []*karpenter.NodeClaim
	version int64
	// owners are the claims that had an instance when they were last seen.
	owners map[string]string
	fence  fence
	life   life
	drains drains
	guard  guard
	sagas  sagas
	money  money
	rate   rate
	// boundAt is when a claim was first seen with its instance.
	boundAt map[string]time.Time
	// finished are the receipts whose handler has returned.
	finished map[string]bool
}

func newChecker(world *embedded.World, pools map[string]corev1.ResourceList) *checker {
	vcpu := map[string]int64{}
	for _, t := range world.Catalogue.Types {
		vcpu[t.Name] = t.VCPU
	}
	return &checker{
		vcpu: vcpu, world: world, limits: limits{pools: pools, back: map[string]time.Time{}}, orphaned: map[string]time.Time{}, bound: map[string]string{},
		wanted: map[string]map[string]bool{}, said: map[string]bool{}, reached: map[string]int{}, finished: map[string]bool{}, owners: map[string]string{},
		guard: newGuard(), sagas: newSagas(), rate: newRate(0), boundAt: map[string]time.Time{},
	}
}

// violate notes a broken promise, once for each detail.
func (c *checker) violate(promise, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	if c.said[promise+detail] {
		return
	}
	c.said[promise+detail] = true
	c.found = append(c.found, Violation{c.world.Now(), promise, detail})
}

// look checks every promise that must hold at any instant.
func (c *checker) look() {
	claims := c.claims()
	records := c.world.Cloud.Records()
	c.oneLaunchAnIntent(records)
	c.claimOutlivesInstance(records, claims)
	c.noOrphan(records, claims)
	c.withinLimits(records)
	c.withinMoney(records)
	c.sagas.look(c, claims)
	c.deadlines(records, claims)
}

func (c *checker) claims() []*karpenter.NodeClaim {
	if c.version == c.world.Kube.Version() {
		return c.seen
	}
	c.version = c.world.Kube.Version()
	c.guard.follow(c)
	var out []*karpenter.NodeClaim
	// The world's own hand reads without disturbing anybody.
	objects, err := c.world.Kube.World("checker").List(context.Background(), cluster.NodeClaims, "")
	if err != nil {
		c.violate("models work", "listing claims: %v", err)
	}
	for _, o := range objects {
		claim := o.(*karpenter.NodeClaim)
		out = append(out, claim)
		intent := claim.Annotations[intentTag]
		if c.wanted[intent] == nil {
			c.wanted[intent] = map[string]bool{}
		}
		c.wanted[intent][claim.Name] = true
		c.neverRebound(claim)
		c.life.look(c, claim)
		c.drains.look(c, claim)
	}
	c.seen = out
	c.fence.look(c, out)
	c.life.nodes(c)
	return out
}

// neverRebound: a claim's providerID is written once, and no two claims have
// the same.
func (c *checker) neverRebound(claim *karpenter.NodeClaim) {
	id := claim.Status.ProviderID
	if id == "" {
		return
	}
	key := string(claim.UID)
	if before := c.bound[key]; before != "" && before != id {
		c.violate("a claim is bound once", "%s was %s and is %s", claim.Name, before, id)
	}
	if other := c.bound[id]; other != "" && other != key {
		c.violate("an instance has one claim", "%s belongs to %s as well as to another", id, claim.Name)
	}
	if c.bound[key] == "" {
		c.boundAt[key] = c.world.Now()
	}
	c.bound[key], c.bound[id] = id, key
}

// oneLaunchAnIntent: no more instances ever carried an intent's tag than it had
// claims.
func (c *checker) oneLaunchAnIntent(records []memcloud.Record) {
	count := map[string]int{}
	for _, r := range records {
		if intent := r.Tags[intentTag]; intent != "" {
			count[intent]++
		}
	}
	for intent, n := range count {
		if claims := len(c.wanted[intent]); n > claims {
			c.violate("no intent is launched twice", "intent %s has %d instances for %d claims", intent, n, claims)
		}
	}
}

// claimOutlivesInstance: a claim that has an instance stays until EC2 has ended
// it.
func (c *checker) claimOutlivesInstance(records []memcloud.Record, claims []*karpenter.NodeClaim) {
	owners := map[string]string{}
	for _, claim := range claims {
		if claim.Status.ProviderID != "" {
			owners[claim.Status.ProviderID] = claim.Name
		}
	}
	for _, r := range records {
		provider := "aws:///" + r.Zone + "/" + r.ID
		if name := c.owners[provider]; name != "" && owners[provider] == "" && r.Gone.IsZero() {
			c.violate("a claim outlives its instance", "%s is gone, and %s is %s", name, r.ID, r.State)
		}
	}
	c.owners = owners
}

// noOrphan: an instance that lives has a claim, or a claim that waits for it.
func (c *checker) noOrphan(records []memcloud.Record, claims []*karpenter.NodeClaim) {
	has, waits := map[string]bool{}, map[string]bool{}
	for _, claim := range claims {
		if claim.Status.ProviderID == "" {
			waits[claim.Annotations[intentTag]] = true
		}
		has[claim.Status.ProviderID] = true
	}
	for _, r := range records {
		provider := "aws:///" + r.Zone + "/" + r.ID
		if !r.Ended.IsZero() || has[provider] || waits[r.Tags[intentTag]] {
			delete(c.orphaned, r.ID)
			continue
		}
		since, known := c.orphaned[r.ID]
		if !known {
			c.orphaned[r.ID] = c.world.Now()
		} else if c.world.Now().Sub(since) > orphanLife {
			c.violate("no orphan is older than 90 s", "instance %s of intent %s", r.ID, r.Tags[intentTag])
		}
	}
}

// deadlines: a drain that AWS forces ends by the moment that AWS named.
func (c *checker) deadlines(records []memcloud.Record, claims []*karpenter.NodeClaim) {
	warned := map[string]time.Time{}
	for _, r := range records {
		if !r.Warned.IsZero() {
			warned["aws:///"+r.Zone+"/"+r.ID] = r.Warned
		}
	}
	for _, claim := range claims {
		deadline, ok := warned[claim.Status.ProviderID]
		text := claim.Annotations["karpenter.sh/nodeclaim-termination-timestamp"]
		at, err := time.Parse(time.RFC3339, text)
		if ok && err == nil && claim.DeletionTimestamp != nil && at.After(deadline.Add(time.Second)) && c.drainsByNotice(claim) {
			c.violate("a deadline is absolute", "%s drains until %s, and AWS takes it at %s", claim.Name, at, deadline)
		}
	}
}

// drainsByNotice leaves out claims that were going before the warning and have
// a time of their own; a notice moves that earlier as soon as it is handled.
func (c *checker) drainsByNotice(claim *karpenter.NodeClaim) bool {
	grace := claim.Spec.TerminationGracePeriod
	at, _ := time.Parse(time.RFC3339, claim.Annotations["karpenter.sh/nodeclaim-termination-timestamp"])
	return grace == nil || !at.Equal(claim.DeletionTimestamp.Add(grace.Duration))
}

// handled is told of every message that a handler has finished with, and when
// it began.
func (c *checker) handled(actor string, m queue.Message, began time.Time, err error) {
	c.finished[m.Receipt] = true
	c.obeyed(actor, m, began, err)
	var e struct {
		Expires time.Time `json:"expires"`
		Type    string    `json:"type"`
		ID      string    `json:"id"`
	}
	if err != nil || json.Unmarshal(m.Body, &e) != nil || e.Expires.IsZero() {
		return
	}
	if !began.Before(e.Expires) {
		c.violate("an expired message does nothing", "%s handled %s %s, which expired at %s",
			actor, e.Type, e.ID, e.Expires.Format("15:04:05.000"))
	}
}

// called is told of every call that took place.
func (c *checker) called(call embedded.Call, err error) {
	if call.Port == "cloud" && call.Verb == "terminate" && err == nil {
		c.endsInTurn(call.Actor, strings.Fields(call.About))
	}
	if call.Port == "queue" && call.Verb == "delete" {
		for _, receipt := range strings.Fields(call.About)[1:] {
			if !c.finished[receipt] {
				c.violate("a message goes after its work", "%s deleted a message of %s that no handler had finished", call.Actor, call.About)
			}
		}
	}
}
