package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// maxHostileRecovery is how long the run waits for the recovery.
const maxHostileRecovery = 11 * time.Minute

// breakerWindow and maxUnproven limit how many nodes are removed because of messages that nothing confirms.
const (
	breakerWindow = 10 * time.Minute
	maxUnproven   = 3
)

// maxQueued is how many messages a queue may hold after the recovery.
const maxQueued = 100

// The promises that only hostile seeds check.
const (
	promiseForgery     = "no fact of another service can be forged"
	promiseLimits      = "no NodePool limit is exceeded"
	promiseRemovals    = "no node in use is removed outside of budgets"
	promiseUnproven    = "at most three nodes in ten minutes are removed without a drain"
	promiseTermination = "an instance is terminated only if its NodeClaim requests it"
	promiseNeighbour   = "instances of other clusters do not end"
	promiseLaunches    = "instances are launched as the EC2NodeClass says"
	promiseOwners      = "no instance without owner remains after the recovery"
	promiseDelay       = "pods of other tenants are planned within the bound"
	promiseRecovery    = "the cluster recovers within the bound after the attack"
	promiseCrash       = "no service crashes"
	promiseQueues      = "queues stay bounded"
	promiseRejections  = "each rejected message ends with a reason"
)

// hostileChecker checks the promises of hostile seeds.
type hostileChecker struct {
	*attacker
	began, ended time.Time
	// unproven are when NodeClaims were marked as gone although EC2 runs their instance.
	unproven []time.Time
	// pendingSince is since when each pod of another tenant is pending.
	pendingSince map[cluster.Key]time.Time
	// longestPending is the longest time that one of them was pending until the attack ended.
	longestPending time.Duration
	checked        time.Time
}

func newHostileChecker(a *attacker) *hostileChecker {
	return &hostileChecker{attacker: a, pendingSince: map[cluster.Key]time.Time{}}
}

// checkForgery checks a message of the attacker that a service accepted: a fact must be of the attacker's name and of a
// type that it produces.
func (a *attacker) checkForgery(actor string, m message, sent *sentMessage) {
	sent.handled = true
	a.count("accepted")
	kind := typeOf(m.Body)
	spec, err := kind.Spec()
	if err != nil || !spec.IsFact() || a.isRepeat(m.Body) {
		return // A queue's policy lists its senders, and each of them may send any command.
	}
	if sent.source != "joist/"+a.name || !slices.Contains(spec.Producers, a.name) {
		a.checker.reportViolation(promiseForgery, "%s accepted %s from %s, which %s sent", actor, kind, sent.source, a.name)
	}
}

// checkCrash checks the result of a handler: the host turns a panic into an error of the kind bug.
func (a *attacker) checkCrash(actor string, err error) {
	if fault.Is(err, fault.Bug) {
		a.checker.reportViolation(promiseCrash, "%s: %v", actor, err)
	}
}

// recordDisposition records what the host did with a message of the attacker.
func (a *attacker) recordDisposition(line host.LogLine) {
	sent := a.sent[messageKey(line.Message.Body)]
	if sent == nil {
		return
	}
	sent.action, sent.kindOfReason, sent.reason = string(line.Disposition.Action), string(line.Disposition.Kind), line.Disposition.Reason
	a.count("disposition " + sent.action + " " + sent.kindOfReason)
}

// observeWrite checks a change of a NodeClaim.
func (h *hostileChecker) observeWrite(c *checker, e memcluster.Effect) { //nolint:gocyclo // two promises about one write, which are read together
	before, _ := e.Before.(*karpenter.NodeClaim)
	after, _ := e.After.(*karpenter.NodeClaim)
	if h == nil || before == nil || h.began.IsZero() {
		return
	}
	const gone = "joist.sh/instance-gone"
	if after != nil && before.Annotations[gone] == "" && after.Annotations[gone] != "" && h.isRunning(before) && !isDrained(before, e.At) && before.Status.Conditions.IsTrue("Initialized") {
		h.recordUnproven(c, e.At)
	}
	isDeleted := before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil)
	if !isDeleted || !strings.HasPrefix(e.Actor, "lifecycle-") || before.Annotations[gone] != "" || !before.Status.Conditions.IsTrue("Initialized") {
		return
	}
	c.occurrences["node removed during an attack"]++
	if _, acts := confirmedProposal(before); !acts && h.isRunning(before) {
		c.reportViolation(promiseRemovals, "%s deleted NodeClaim %s, which no disruption within a budget removes", e.Actor, e.Key.Name)
	}
}

// isDrained reports whether the NodeClaim's node was drained before: for half a minute, or until its termination.
func isDrained(claim *karpenter.NodeClaim, at time.Time) bool {
	return claim.DeletionTimestamp != nil && (claim.Status.Conditions.IsTrue("InstanceTerminating") || at.Sub(claim.DeletionTimestamp.Time) >= 30*time.Second)
}

// isRunning reports whether EC2 neither ended nor warned the NodeClaim's instance.
func (h *hostileChecker) isRunning(claim *karpenter.NodeClaim) bool {
	for _, r := range h.world.Cloud.Records() {
		if strings.HasSuffix(claim.Status.ProviderID, "/"+r.ID) {
			return r.Ended.IsZero() && r.Warned.IsZero()
		}
	}
	return false
}

// recordUnproven counts a node that lifecycle regards as gone although its instance runs.
func (h *hostileChecker) recordUnproven(c *checker, at time.Time) {
	c.occurrences["node removed without proof"]++
	h.unproven = append(slices.DeleteFunc(h.unproven, func(t time.Time) bool { return at.Sub(t) >= breakerWindow }), at)
	if len(h.unproven) > maxUnproven {
		c.reportViolation(promiseUnproven, "%d nodes within %s count as gone although their instances run, and %d may", len(h.unproven), breakerWindow, maxUnproven)
	}
}

// checkNow checks the promises that hold at any time.
func (h *hostileChecker) checkNow(c *checker) {
	now := c.world.Now()
	if h == nil || h.began.IsZero() || now.Sub(h.checked) < time.Second {
		return
	}
	h.checked = now
	aws := c.world.AWS
	for _, r := range c.world.Cloud.Records() {
		switch {
		case isForeign(r) && !r.Ended.IsZero():
			c.reportViolation(promiseNeighbour, "instance %s has ended", r.ID)
		case !isForeign(r) && (r.ImageID != aws.ImageARM64.ID || !slices.Equal(r.SecurityGroups, []string{aws.SecurityGroup.ID})):
			c.reportViolation(promiseLaunches, "instance %s has image %s and security groups %v", r.ID, r.ImageID, r.SecurityGroups)
		}
	}
	h.checkDelays(c, now)
}

// checkDelays checks how long pods of other tenants are pending.
func (h *hostileChecker) checkDelays(c *checker, now time.Time) {
	pending := map[cluster.Key]time.Time{}
	bound := DelayBounds[h.name]
	for _, pod := range h.listPods() {
		if pod.Namespace == tenantNamespace || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodRunning || pod.Spec.NodeName != "" {
			continue
		}
		key := cluster.KeyOf(pod)
		pending[key] = now
		if since, known := h.pendingSince[key]; known {
			pending[key] = since
		}
		h.longestPending = max(h.longestPending, now.Sub(pending[key]))
		// A bound of zero promises nothing during the attack.
		if bound.During > 0 && now.Sub(pending[key]) > bound.During {
			c.reportViolation(promiseDelay, "pod %s is pending for %s", pod.Name, bound.During)
		}
	}
	h.pendingSince = pending
}

// checkRecovery checks the end of a run.
func (h *hostileChecker) checkRecovery(recovered bool) {
	c, took := h.checker, h.world.Now().Sub(h.ended)
	h.faults[h.name+": recovered within "+durationClass(took)]++
	h.faults[h.name+": a pod was pending for at most "+durationClass(h.longestPending)]++
	if bound := DelayBounds[h.name].After; !recovered || took > bound {
		c.reportViolation(promiseRecovery, "not within %s: %s", bound, h.describeState())
	}
	h.checkOwners(c)
	h.checkQueues(c)
	h.checkRejections(c)
}

// durationClass is the row of the histogram for a duration.
func durationClass(took time.Duration) string {
	for _, limit := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 6 * time.Minute, 10 * time.Minute} {
		if took <= limit {
			return fmt.Sprintf("%2.1f min", limit.Minutes())
		}
	}
	return "more time"
}

// ownedInstances are the provider ids of instances that have a NodeClaim.
func (h *hostileChecker) ownedInstances() map[string]bool {
	owned := map[string]bool{}
	for _, o := range h.listObjects(cluster.NodeClaims) {
		owned[o.(*karpenter.NodeClaim).Status.ProviderID] = true
	}
	return owned
}

func (h *hostileChecker) checkOwners(c *checker) {
	owned := h.ownedInstances()
	for _, r := range h.world.Cloud.Records() {
		if !isForeign(r) && r.Ended.IsZero() && !owned["aws:///"+r.Zone+"/"+r.ID] {
			c.reportViolation(promiseOwners, "instance %s of intent %s runs and has no NodeClaim", r.ID, r.Tags[intentTag])
		}
	}
}

func (h *hostileChecker) checkQueues(c *checker) {
	for _, name := range h.world.Broker.Queues() {
		q, _ := h.world.Broker.FindQueue(name)
		if visible, hidden, _ := q.Depth(context.Background()); !strings.HasSuffix(name, "-dead") && visible+hidden > maxQueued {
			c.reportViolation(promiseQueues, "%s holds %d messages", name, visible+hidden)
		}
	}
}

// checkRejections checks that each message that a service rejected ends in the DLQ or is deleted, with kind and reason.
// A message that is retried must not have expired.
func (h *hostileChecker) checkRejections(c *checker) {
	for _, m := range h.sent {
		switch {
		case m.action == "" || m.action == "stolen" || m.kindOfReason == "" && m.action == string(host.Delete):
		case m.kindOfReason == "" || m.reason == "":
			c.reportViolation(promiseRejections, "a message %s has action %s, kind %q and no reason", m.kind, m.action, m.kindOfReason)
		case m.action != string(host.Delete) && m.action != string(host.MoveToDLQ):
			c.occurrences["message still retried"]++
		}
	}
}
