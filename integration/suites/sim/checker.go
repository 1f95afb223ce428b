package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Violation is one broken promise.
type Violation struct {
	At      time.Time
	Promise string
	Detail  string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s", v.At.Format("15:04:05.000"), v.Promise, v.Detail)
}

// intentTag repeats the tag of the code under test, so that a change of it is noticed.
const intentTag = "joist.sh/intent"

// maxOrphanAge is how long an instance may run without a NodeClaim.
const maxOrphanAge = 90 * time.Second

// checker compares the models with the promises.
type checker struct {
	world      *embedded.EmbeddedCluster
	limits     limitChecker
	violations []Violation
	// orphanSince is when each instance was first seen without a NodeClaim.
	orphanSince map[string]time.Time
	// bindings maps NodeClaims to instances and back; they must never change.
	bindings map[string]string
	// claimsByIntent are the names of all NodeClaims that an intent ever had.
	claimsByIntent map[string]map[string]bool
	reported       map[string]bool
	// occurrences counts the situations that were checked, by kind, as proof that there were some.
	occurrences map[string]int
	// vcpu is the number of vCPUs of each type. lastClaims are the NodeClaims at a version of the API server.
	vcpu       map[string]int64
	lastClaims []*karpenter.NodeClaim
	version    int64
	// boundClaims and unboundClaims are lastClaims by the ID of their instance, and by intent without one. leaving is the
	// result of isLeaving for each.
	boundClaims, unboundClaims map[string][]*karpenter.NodeClaim
	leaving                    map[*karpenter.NodeClaim]bool
	// launches is how many instances each intent has had.
	launches map[string]int
	// ownerClaims are the NodeClaims that had an instance at the last check.
	ownerClaims map[string]string
	fence       fenceChecker
	progress    progressChecker
	drains      drainChecker
	evictions   evictionChecker
	disruptions disruptionChecker
	prices      priceLimits
	rate        evictionRate
	repairs     repairChecker
	paths       pathChecker
	// hostile is nil except in hostile seeds.
	hostile *hostileChecker
	// features are those of the seed.
	features seedFeatures
	// clocks are those of the actors' machines; nil if they agree with the world's.
	clocks *machineClocks
	// boundAt is when a NodeClaim was first seen with its instance.
	boundAt map[string]time.Time
	// usedByOthers is how many instances of other accounts run in each reservation.
	usedByOthers map[string]int
	// finishedReceipts are the receipts of messages whose handler has returned.
	finishedReceipts map[string]bool
}

func newChecker(world *embedded.EmbeddedCluster, pools map[string]corev1.ResourceList) *checker {
	vcpu := map[string]int64{}
	for _, t := range world.Catalogue.Types {
		vcpu[t.Name] = t.VCPU
	}
	return &checker{
		vcpu: vcpu, world: world, limits: limitChecker{pools: pools, returnedAt: map[string]time.Time{}}, orphanSince: map[string]time.Time{}, bindings: map[string]string{},
		claimsByIntent: map[string]map[string]bool{}, reported: map[string]bool{}, occurrences: map[string]int{}, finishedReceipts: map[string]bool{}, ownerClaims: map[string]string{},
		evictions: newEvictionChecker(), disruptions: newDisruptionChecker(), rate: newEvictionRate(0), boundAt: map[string]time.Time{}, paths: newPathChecker(), usedByOthers: map[string]int{},
		boundClaims: map[string][]*karpenter.NodeClaim{}, unboundClaims: map[string][]*karpenter.NodeClaim{}, leaving: map[*karpenter.NodeClaim]bool{}, launches: map[string]int{},
	}
}

// reportViolation adds a violation, once for each detail.
func (c *checker) reportViolation(promise, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	if c.reported[promise+detail] {
		return
	}
	c.reported[promise+detail] = true
	c.violations = append(c.violations, Violation{c.world.Now(), promise, detail})
}

// checkAll checks the promises that must hold at any time.
func (c *checker) checkAll() {
	claims := c.readClaims()
	records := c.world.Cloud.Records()
	if c.hostile != nil { // Instances of another cluster of the account are the hostile checker's.
		records = slices.DeleteFunc(records, isForeign)
	}
	c.checkLaunchCount(records)
	c.checkClaimOutlivesInstance(records, claims)
	c.checkOrphans(records, claims)
	c.checkLimits(records)
	c.checkPriceLimits(records)
	c.disruptions.checkDurations(c, claims)
	c.checkDeadlines(records, claims)
	c.checkReservations(records)
	c.checkExpressions(claims)
	c.hostile.checkNow(c)
}

func (c *checker) readClaims() []*karpenter.NodeClaim {
	if c.version == c.world.Kube.Version() {
		return c.lastClaims
	}
	c.version = c.world.Kube.Version()
	c.evictions.observeWrites(c)
	var out []*karpenter.NodeClaim
	for _, o := range c.world.Kube.ListStored(cluster.NodeClaims) {
		claim := o.(*karpenter.NodeClaim)
		out = append(out, claim)
		intent := claim.Annotations[intentTag]
		if c.claimsByIntent[intent] == nil {
			c.claimsByIntent[intent] = map[string]bool{}
		}
		c.claimsByIntent[intent][claim.Name] = true
		c.checkBinding(claim)
		c.progress.checkClaim(c, claim)
		c.drains.checkClaim(c, claim)
	}
	c.indexClaims(out)
	c.fence.checkOutbox(c, out)
	c.progress.checkNodes(c)
	return out
}

// checkBinding checks that the provider id of a NodeClaim is written once and that no two have the same.
func (c *checker) checkBinding(claim *karpenter.NodeClaim) {
	id := claim.Status.ProviderID
	if id == "" {
		return
	}
	key := string(claim.UID)
	if before := c.bindings[key]; before != "" && before != id {
		c.reportViolation("a NodeClaim is bound once", "the provider id of %s changed from %s to %s", claim.Name, before, id)
	}
	if other := c.bindings[id]; other != "" && other != key {
		c.reportViolation("an instance has one NodeClaim", "instance %s belongs to NodeClaim %s and to another one", id, claim.Name)
	}
	if c.bindings[key] == "" {
		c.boundAt[key] = c.world.Now()
	}
	c.bindings[key], c.bindings[id] = id, key
}

// checkLaunchCount checks that an intent never had more instances than NodeClaims.
func (c *checker) checkLaunchCount(records []memcloud.Record) {
	clear(c.launches)
	for i := range records {
		if intent := records[i].Tags[intentTag]; intent != "" {
			c.launches[intent]++
		}
	}
	for intent, n := range c.launches {
		if claims := len(c.claimsByIntent[intent]); n > claims {
			c.reportViolation("no intent is launched twice", "intent %s has %d instances for %d claims", intent, n, claims)
		}
	}
}

// checkClaimOutlivesInstance checks that a NodeClaim with an instance exists until EC2 has terminated the
// instance.
func (c *checker) checkClaimOutlivesInstance(records []memcloud.Record, claims []*karpenter.NodeClaim) {
	owners := make(map[string]string, len(claims))
	for _, claim := range claims {
		if claim.Status.ProviderID != "" {
			owners[claim.Status.ProviderID] = claim.Name
		}
	}
	for i := range records {
		r := &records[i]
		if !r.Gone.IsZero() {
			continue
		}
		provider := "aws:///" + r.Zone + "/" + r.ID
		if name := c.ownerClaims[provider]; name != "" && owners[provider] == "" {
			c.reportViolation("a NodeClaim outlives its instance", "NodeClaim %s is deleted, and instance %s is %s", name, r.ID, r.State)
		}
	}
	c.ownerClaims = owners
}

// checkOrphans checks that each running instance that EC2 shows has a NodeClaim or one that waits for it.
func (c *checker) checkOrphans(records []memcloud.Record, claims []*karpenter.NodeClaim) {
	has, waits := make(map[string]bool, len(claims)), map[string]bool{}
	for _, claim := range claims {
		if claim.Status.ProviderID == "" {
			waits[claim.Annotations[intentTag]] = true
		}
		has[claim.Status.ProviderID] = true
	}
	for i := range records {
		r := &records[i]
		if !r.Ended.IsZero() || has["aws:///"+r.Zone+"/"+r.ID] || waits[r.Tags[intentTag]] || c.world.Now().Before(r.Visible) {
			delete(c.orphanSince, r.ID)
			continue
		}
		since, known := c.orphanSince[r.ID]
		if !known {
			c.orphanSince[r.ID] = c.world.Now()
		} else if c.world.Now().Sub(since) > maxOrphanAge {
			c.reportViolation("no orphaned instance runs for more than 90 s", "instance %s of intent %s", r.ID, r.Tags[intentTag])
		}
	}
}

// checkDeadlines checks that a drain ends before EC2 interrupts the instance.
func (c *checker) checkDeadlines(records []memcloud.Record, claims []*karpenter.NodeClaim) {
	warned := map[string]time.Time{}
	for i := range records {
		if r := &records[i]; !r.Warned.IsZero() {
			warned["aws:///"+r.Zone+"/"+r.ID] = r.Warned
		}
	}
	for _, claim := range claims {
		deadline, ok := warned[claim.Status.ProviderID]
		if !ok || claim.DeletionTimestamp == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339, claim.Annotations["karpenter.sh/nodeclaim-termination-timestamp"])
		if err == nil && at.After(deadline.Add(time.Second)) && c.isDeadlineFromNotice(claim) {
			c.reportViolation("a drain ends by the deadline of the interruption", "%s drains until %s, and EC2 interrupts it at %s", claim.Name, at, deadline)
		}
	}
}

// isDeadlineFromNotice is false for NodeClaims that were deleted before the notice was handled and end by their own
// grace period or by that of a repair. A notice makes the deadline earlier once it is handled.
func (c *checker) isDeadlineFromNotice(claim *karpenter.NodeClaim) bool {
	grace := claim.Spec.TerminationGracePeriod
	at, _ := time.Parse(time.RFC3339, claim.Annotations["karpenter.sh/nodeclaim-termination-timestamp"])
	p, acts := confirmedProposal(claim)
	// A failed reboot has no proposal any more, and the limit of its repair.
	isRepair := acts && p.Reason == unhealthyReason || claim.Annotations[karpenter.RebootTerminationGracePeriodAnnotationKey] != ""
	if isRepair && at.Sub(c.repairs.deadlineWritten[claim.UID]) <= repairGrace {
		return false
	}
	return grace == nil || !at.Equal(claim.DeletionTimestamp.Add(grace.Duration))
}

// checkHandled checks a message that a handler has finished. A message expires by the clock of the actor.
func (c *checker) checkHandled(actor string, m queue.Message, began time.Time, err error) {
	c.finishedReceipts[m.Receipt] = true
	c.checkNotice(actor, m, began, err)
	var e struct {
		Expires time.Time `json:"expires"`
		Type    string    `json:"type"`
		ID      string    `json:"id"`
	}
	if err != nil || json.Unmarshal(m.Body, &e) != nil || e.Expires.IsZero() {
		return
	}
	if !c.clocks.readClock(actor, began).Before(e.Expires) {
		c.reportViolation("expired messages are not handled", "%s handled %s %s, which expired at %s",
			actor, e.Type, e.ID, e.Expires.Format("15:04:05.000"))
	}
}

// checkCall checks a call that took place.
func (c *checker) checkCall(call embedded.Call, err error) {
	c.paths.observeCall(c, call)
	if call.Port == "cloud" && call.Verb == "reboot" && err == nil {
		c.checkReboot(call.About)
	}
	if call.Port == "cloud" && call.Verb == "terminate" && err == nil {
		c.checkTermination(call.Actor, strings.Fields(call.About))
	}
	if call.Port == "queue" && call.Verb == "delete" {
		for _, receipt := range strings.Fields(call.About)[1:] {
			if !c.finishedReceipts[receipt] {
				c.reportViolation("messages are deleted after they are handled", "%s deleted a message of %s before a handler returned", call.Actor, call.About)
			}
		}
	}
}
