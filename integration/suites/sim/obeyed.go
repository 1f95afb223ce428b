package sim

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// noticed is the part of a notice that the checker reads.
type noticed struct {
	Type string `json:"type"`
	Data struct {
		Kind       string    `json:"kind"`
		InstanceID string    `json:"instanceId"`
		Deadline   time.Time `json:"deadline"`
	} `json:"data"`
}

// obeyed: whatever the API server answers, a notice that is done with has had its
// effect: the claim of its instance is being deleted, by the moment that AWS named.
// And none is put aside as somebody else's that is of an instance of ours.
func (c *checker) obeyed(actor string, m queue.Message, began time.Time, err error) {
	var n noticed
	if !strings.HasPrefix(actor, "lifecycle-") || json.Unmarshal(m.Body, &n) != nil || n.Type != "node.noticed.v1" || n.Data.Kind == "rebalance-recommendation" {
		return
	}
	claim := c.claimOf(n.Data.InstanceID)
	if claim == nil {
		return
	}
	if since, known := c.boundAt[string(claim.UID)]; fault.Is(err, fault.Foreign) && known && since.Before(began) {
		c.violate("nothing of ours is foreign", "%s put the notice of %s aside, which %s has", actor, n.Data.InstanceID, claim.Name)
	}
	if err != nil {
		return
	}
	ends, _ := time.Parse(time.RFC3339, claim.Annotations["karpenter.sh/nodeclaim-termination-timestamp"])
	switch {
	case claim.DeletionTimestamp == nil:
		c.violate("a notice is obeyed", "%s is done with the %s of %s, and %s stays", actor, n.Data.Kind, n.Data.InstanceID, claim.Name)
	case !n.Data.Deadline.IsZero() && (ends.IsZero() || ends.After(n.Data.Deadline)):
		c.violate("a notice is obeyed", "%s is done with the %s of %s, and %s ends at %s, not by %s",
			actor, n.Data.Kind, n.Data.InstanceID, claim.Name, ends, n.Data.Deadline)
	}
}

// claimOf is the claim that has the instance now; nil when there is none.
func (c *checker) claimOf(instance string) *karpenter.NodeClaim {
	objects, err := c.world.Kube.World("checker").List(context.Background(), cluster.NodeClaims, "")
	if err != nil {
		c.violate("models work", "listing claims: %v", err)
	}
	for _, claim := range cluster.Cast[*karpenter.NodeClaim](objects) {
		if strings.HasSuffix(claim.Status.ProviderID, "/"+instance) {
			return claim
		}
	}
	return nil
}

// endsInTurn: whoever ends an instance that a claim has was told to by that claim.
func (c *checker) endsInTurn(actor string, ids []string) {
	for _, id := range ids {
		if claim := c.claimOf(id); claim != nil && !claim.Status.Conditions.True("InstanceTerminating") {
			c.violate("an instance ends when its claim says so", "%s ended %s, and %s does not say so", actor, id, claim.Name)
		}
	}
}
