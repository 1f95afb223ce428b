package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

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
	// faultsEnd is when the faults stopped; zero during the fault phase.
	faultsEnd time.Time
}

func newDisruptionChecker() disruptionChecker {
	return disruptionChecker{claims: map[string]*karpenter.NodeClaim{}, everInitialized: map[string]bool{}}
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

// checkReplacements checks that all replacements of a deleted NodeClaim were initialized. Interrupted instances are
// exempt, and NodeClaims with a deadline that is not the repair's.
func (s *disruptionChecker) checkReplacements(c *checker, e memcluster.Effect, claim *karpenter.NodeClaim, p proposal) {
	if claim.Annotations["karpenter.sh/nodeclaim-termination-timestamp"] != "" && p.Reason != unhealthyReason || isInterrupted(c.world.Cloud.Records(), claim) {
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
