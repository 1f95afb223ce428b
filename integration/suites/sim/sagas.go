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

// sagaLife is how long a disruption may wait for its replacements once nothing goes
// wrong any more: the ten minutes that they are given, and some to look.
const sagaLife = 13 * time.Minute

// sagas follows every write to a claim and judges the disruptions that act: each begins
// within the budgets, takes no node before what replaces it is there, and ends.
type sagas struct {
	// allowed is how many nodes may go at once by the reason; nil is no bound.
	allowed map[string]int
	// claims are as they were written last.
	claims map[string]*karpenter.NodeClaim
	// initialized are the names of claims that were at some time.
	initialized map[string]bool
	// healed is since when nothing goes wrong any more; zero while something does.
	healed time.Time
}

func newSagas() sagas {
	return sagas{claims: map[string]*karpenter.NodeClaim{}, initialized: map[string]bool{}}
}

// proposal is the part of what stands on a claim that the checker reads.
type proposal struct {
	ID           string    `json:"id"`
	Reason       string    `json:"reason"`
	Confirmed    time.Time `json:"confirmed"`
	Replacements []string  `json:"replacements"`
}

// acting is the proposal that acts on the claim; false where none does.
func acting(claim *karpenter.NodeClaim) (proposal, bool) {
	var p proposal
	if claim == nil || json.Unmarshal([]byte(claim.Annotations["joist.sh/proposal"]), &p) != nil {
		return p, false
	}
	return p, !p.Confirmed.IsZero()
}

// follow takes one write.
func (s *sagas) follow(c *checker, e memcluster.Effect) {
	if e.Kind != cluster.NodeClaims {
		return
	}
	before, _ := e.Before.(*karpenter.NodeClaim)
	after, _ := e.After.(*karpenter.NodeClaim)
	if after == nil {
		delete(s.claims, e.Key.Name)
	} else {
		s.claims[e.Key.Name] = after
		if after.Status.Conditions.True("Initialized") {
			s.initialized[e.Key.Name] = true
		}
	}
	if !strings.HasPrefix(e.Actor, "lifecycle-") {
		return
	}
	_, acted := acting(before)
	if p, acts := acting(after); acts && !acted {
		s.begins(c, e, after, p)
	}
	if p, acts := acting(before); acts && before.DeletionTimestamp == nil && (after == nil || after.DeletionTimestamp != nil) {
		s.ends(c, e, before, p)
	}
}

// begins: no budget is overdrawn. What goes of a pool counts as long as its instance
// does not end.
func (s *sagas) begins(c *checker, e memcluster.Effect, claim *karpenter.NodeClaim, p proposal) {
	c.reached["saga "+strings.ToLower(p.Reason)]++
	if len(p.Replacements) > 0 {
		c.reached["saga with replacements"]++
	}
	most, bounded := s.allowed[p.Reason]
	if !bounded {
		return
	}
	c.reached["saga under a budget"]++
	var going []string
	for name, other := range s.claims {
		if _, acts := acting(other); acts && other.Labels["karpenter.sh/nodepool"] == claim.Labels["karpenter.sh/nodepool"] &&
			other.Status.Conditions.True("Initialized") && !other.Status.Conditions.True("InstanceTerminating") {
			going = append(going, name)
		}
	}
	if slices.Sort(going); len(going) > most {
		c.violate("no budget is overdrawn", "with %s, which %s lets go as %s, there go %v, and %d may", e.Key.Name, e.Actor, p.Reason, going, most)
	}
}

// ends: a node that is replaced goes when all of what replaces it has been there. One
// whose time is named, or whose instance AWS takes, goes for another reason.
func (s *sagas) ends(c *checker, e memcluster.Effect, claim *karpenter.NodeClaim, p proposal) {
	if claim.Annotations["karpenter.sh/nodeclaim-termination-timestamp"] != "" || taken(c.world.Cloud.Records(), claim) {
		return
	}
	for _, name := range p.Replacements {
		if !s.initialized[name] {
			c.violate("a replacement comes before the end", "%s deleted %s, and %s, which replaces it, was never initialized", e.Actor, e.Key.Name, name)
		}
	}
	if len(p.Replacements) > 0 {
		c.reached["saga that replaced"]++
	}
}

// taken reports whether AWS takes the claim's instance away, or has.
func taken(records []memcloud.Record, claim *karpenter.NodeClaim) bool {
	return slices.ContainsFunc(records, func(r memcloud.Record) bool {
		return strings.HasSuffix(claim.Status.ProviderID, "/"+r.ID) && (!r.Ended.IsZero() || !r.Warned.IsZero())
	})
}

// look: once nothing goes wrong any more each disruption is over in time, done or
// rolled back.
func (s *sagas) look(c *checker, claims []*karpenter.NodeClaim) {
	if s.healed.IsZero() {
		return
	}
	for _, claim := range claims {
		p, acts := acting(claim)
		since := p.Confirmed
		if s.healed.After(since) {
			since = s.healed
		}
		if acts && claim.DeletionTimestamp == nil && c.world.Now().Sub(since) > sagaLife {
			c.violate("a disruption ends", "%s goes as %s since %s and is neither gone nor let be", claim.Name, p.Reason, p.Confirmed.Format("15:04:05"))
		}
	}
}
