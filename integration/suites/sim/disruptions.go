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

// maxDisruptionTime is how long a disruption may last without faults: ten minutes for the replacements, and time
// to reconcile.
const maxDisruptionTime = 13 * time.Minute

// disruptionChecker checks every confirmed disruption: it begins within the budgets, deletes no node before its
// replacements are initialized, and completes.
type disruptionChecker struct {
	// maxNodes is how many nodes may be disrupted at once, by reason; nil is no limit.
	maxNodes map[string]int
	// claims are the NodeClaims at their last write.
	claims map[string]*karpenter.NodeClaim
	// everInitialized are the names of NodeClaims that were initialized once.
	everInitialized map[string]bool
	// protectedPods are the protected pods that were on a node when it was tainted, by the node's name.
	protectedPods map[string][]cluster.Key
	// faultsEnd is when the faults stopped; zero during the fault phase.
	faultsEnd time.Time
}

func newDisruptionChecker() disruptionChecker {
	return disruptionChecker{claims: map[string]*karpenter.NodeClaim{}, everInitialized: map[string]bool{}, protectedPods: map[string][]cluster.Key{}}
}

// proposal is the part of the proposal annotation that the checkers read.
type proposal struct {
	ID           string    `json:"id"`
	Reason       string    `json:"reason"`
	Confirmed    time.Time `json:"confirmed"`
	Replacements []string  `json:"replacements"`
	Reboot       string    `json:"reboot"`
}

// confirmedProposal returns the confirmed proposal of the NodeClaim, and false if none exists.
func confirmedProposal(claim *karpenter.NodeClaim) (proposal, bool) {
	if claim == nil || claim.Annotations["joist.sh/proposal"] == "" {
		return proposal{}, false
	}
	var p proposal
	if json.Unmarshal([]byte(claim.Annotations["joist.sh/proposal"]), &p) != nil {
		return p, false
	}
	return p, !p.Confirmed.IsZero()
}

// observeWrite checks one write.
func (s *disruptionChecker) observeWrite(c *checker, e memcluster.Effect) {
	if e.Kind == cluster.Nodes {
		s.recordProtected(c, e)
	}
	if e.Kind != cluster.NodeClaims {
		return
	}
	before, _ := e.Before.(*karpenter.NodeClaim)
	after, _ := e.After.(*karpenter.NodeClaim)
	if after == nil {
		delete(s.claims, e.Key.Name)
	} else {
		s.claims[e.Key.Name] = after
		if after.Status.Conditions.IsTrue("Initialized") {
			s.everInitialized[e.Key.Name] = true
		}
	}
	if !strings.HasPrefix(e.Actor, "lifecycle-") {
		return
	}
	_, acted := confirmedProposal(before)
	if p, acts := confirmedProposal(after); acts && !acted {
		s.checkBudget(c, e, after, p)
		c.repairs.checkRepair(c, e, after, p)
	}
	if p, acts := confirmedProposal(before); acts && before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil) {
		s.checkReplacements(c, e, before, p)
		s.checkProtected(c, e, before, p)
		c.repairs.checkDeadline(c, e, before, p)
	}
}

// checkBudget checks the disruption budgets when a disruption begins. A node counts until its instance terminates.
func (s *disruptionChecker) checkBudget(c *checker, e memcluster.Effect, claim *karpenter.NodeClaim, p proposal) {
	c.occurrences["disruption "+strings.ToLower(p.Reason)]++
	if len(p.Replacements) > 0 {
		c.occurrences["disruption with replacements"]++
	} else if p.Reason != "Empty" && claim.Labels["karpenter.sh/nodepool"] == bookedWorkload {
		c.occurrences["disruption that terminates first"]++
	}
	most, bounded := s.maxNodes[p.Reason]
	if !bounded {
		return
	}
	c.occurrences["disruption under a budget"]++
	var going []string
	for name, other := range s.claims {
		if _, acts := confirmedProposal(other); acts && other.Labels["karpenter.sh/nodepool"] == claim.Labels["karpenter.sh/nodepool"] &&
			other.Status.Conditions.IsTrue("Initialized") && !other.Status.Conditions.IsTrue("InstanceTerminating") {
			going = append(going, name)
		}
	}
	if slices.Sort(going); len(going) > most {
		c.reportViolation("no disruption budget is exceeded", "%s (confirmed by %s as %s) exceeds the budget: disrupted are %v, allowed %d", e.Key.Name, e.Actor, p.Reason, going, most)
	}
}

// checkReplacements checks that all replacements of a deleted NodeClaim were initialized.
func (s *disruptionChecker) checkReplacements(c *checker, e memcluster.Effect, claim *karpenter.NodeClaim, p proposal) {
	if c.mustGo(claim, p) {
		return
	}
	for _, name := range p.Replacements {
		if !s.everInitialized[name] {
			c.reportViolation("replacements are initialized before deletion", "%s deleted %s before its replacement %s was initialized", e.Actor, e.Key.Name, name)
		}
	}
	if len(p.Replacements) > 0 {
		c.occurrences["disruption that replaced"]++
	}
}

// recordProtected records the protected pods on a node that is being tainted.
func (s *disruptionChecker) recordProtected(c *checker, e memcluster.Effect) {
	isTainted := func(o cluster.Object) bool {
		node, ok := o.(*corev1.Node)
		return ok && karpenter.HasTaint(node.Spec.Taints, karpenter.DisruptedTaint())
	}
	if !isTainted(e.After) {
		delete(s.protectedPods, e.Key.Name)
		return
	}
	if isTainted(e.Before) {
		return
	}
	for key, pod := range c.evictions.pods {
		if pod.Spec.NodeName == e.Key.Name && pod.DeletionTimestamp == nil && protectionReason(pod, c.clocks.readClock(e.Actor, e.At)) != "" {
			s.protectedPods[e.Key.Name] = append(s.protectedPods[e.Key.Name], key)
		}
	}
}

// checkProtected checks that no NodeClaim is deleted while a pod that was on its node before the taint, and is protected, is there. Repair
// may do that, and so may the replacement of a drifted node whose drain has a limit.
func (s *disruptionChecker) checkProtected(c *checker, e memcluster.Effect, claim *karpenter.NodeClaim, p proposal) {
	isLimited := claim.Spec.TerminationGracePeriod != nil && p.Reason == string(karpenter.DisruptionReasonDrifted)
	if isLimited || p.Reason == unhealthyReason || c.mustGo(claim, p) {
		return
	}
	for _, key := range s.protectedPods[claim.Status.NodeName] {
		pod := c.evictions.pods[key]
		if pod == nil || pod.DeletionTimestamp != nil {
			continue
		}
		if why := protectionReason(pod, c.clocks.readClock(e.Actor, e.At)); why != "" {
			c.reportViolation("a node with a protected pod is not removed by choice", "%s deleted %s as %s, and its pod %s is %s", e.Actor, e.Key.Name, p.Reason, key, why)
		}
	}
}

// mustGo reports whether a NodeClaim may be deleted at once for another reason than its proposal: it has a deadline that is not
// the repair's, EC2 interrupts its instance, or a user deleted its node.
func (c *checker) mustGo(claim *karpenter.NodeClaim, p proposal) bool {
	hasDeadline := claim.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] != "" && p.Reason != unhealthyReason
	node := c.evictions.nodes[cluster.Key{Name: claim.Status.NodeName}]
	isNodeDeleted := claim.Status.NodeName != "" && (node == nil || node.DeletionTimestamp != nil)
	return hasDeadline || isNodeDeleted || isInterrupted(c.world.Cloud.Records(), claim)
}

// isInterrupted reports whether EC2 has warned about or ended the NodeClaim's instance.
func isInterrupted(records []memcloud.Record, claim *karpenter.NodeClaim) bool {
	return slices.ContainsFunc(records, func(r memcloud.Record) bool {
		return strings.HasSuffix(claim.Status.ProviderID, "/"+r.ID) && (!r.Ended.IsZero() || !r.Warned.IsZero())
	})
}

// checkDurations checks that each disruption completes or is rolled back in time once the faults have stopped.
func (s *disruptionChecker) checkDurations(c *checker, claims []*karpenter.NodeClaim) {
	if s.faultsEnd.IsZero() || c.world.Now().Sub(s.faultsEnd) <= maxDisruptionTime {
		return
	}
	for _, claim := range claims {
		if claim.DeletionTimestamp != nil {
			continue
		}
		p, acts := confirmedProposal(claim)
		since := p.Confirmed
		if s.faultsEnd.After(since) {
			since = s.faultsEnd
		}
		if acts && c.world.Now().Sub(since) > maxDisruptionTime {
			c.reportViolation("every disruption completes", "%s is disrupted as %s since %s and neither deleted nor rolled back", claim.Name, p.Reason, p.Confirmed.Format("15:04:05"))
		}
	}
}
