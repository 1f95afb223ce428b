package sim

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// notice is the part of an interruption notice that the checker reads.
type notice struct {
	Type string `json:"type"`
	Data struct {
		Kind       string    `json:"kind"`
		InstanceID string    `json:"instanceId"`
		Deadline   time.Time `json:"deadline"`
	} `json:"data"`
}

// checkNotice checks that a handled notice has deleted the NodeClaim of its instance with the deadline of AWS, and
// that no notice about an instance with a NodeClaim is rejected as foreign.
func (c *checker) checkNotice(actor string, m queue.Message, began time.Time, err error) {
	var n notice
	if !strings.HasPrefix(actor, "lifecycle-") || json.Unmarshal(m.Body, &n) != nil || n.Type != "node.noticed.v1" || n.Data.Kind == "rebalance-recommendation" {
		return
	}
	claim := c.findClaim(n.Data.InstanceID)
	if claim == nil {
		return
	}
	if since, known := c.boundAt[string(claim.UID)]; fault.Is(err, fault.Foreign) && known && since.Before(began) {
		c.reportViolation("no notice of an owned instance is foreign", "%s rejected the notice of %s, which belongs to %s", actor, n.Data.InstanceID, claim.Name)
	}
	if err != nil {
		return
	}
	ends, _ := time.Parse(time.RFC3339, claim.Annotations["karpenter.sh/nodeclaim-termination-timestamp"])
	switch {
	case claim.DeletionTimestamp == nil:
		c.reportViolation("a handled notice deletes the NodeClaim", "%s handled the %s of %s, and %s is not deleted", actor, n.Data.Kind, n.Data.InstanceID, claim.Name)
	case !n.Data.Deadline.IsZero() && (ends.IsZero() || ends.After(n.Data.Deadline)):
		c.reportViolation("a handled notice deletes the NodeClaim", "%s handled the %s of %s, and %s ends at %s, after the deadline %s",
			actor, n.Data.Kind, n.Data.InstanceID, claim.Name, ends, n.Data.Deadline)
	}
}

// findClaim returns the NodeClaim that has the instance, or nil.
func (c *checker) findClaim(instance string) *karpenter.NodeClaim {
	for _, claim := range cluster.CastAll[*karpenter.NodeClaim](c.world.Kube.ListStored(cluster.NodeClaims)) {
		if strings.HasSuffix(claim.Status.ProviderID, "/"+instance) {
			return claim
		}
	}
	return nil
}

// requestsTermination reports whether the NodeClaim requested the termination of its instance, or is deleted because the
// instance counts as gone.
func requestsTermination(claim *karpenter.NodeClaim) bool {
	return claim.Status.Conditions.IsTrue("InstanceTerminating") || claim.DeletionTimestamp != nil && claim.Annotations["joist.sh/instance-gone"] != ""
}

// checkTermination checks that an instance with a NodeClaim is terminated only if the NodeClaim requested it.
func (c *checker) checkTermination(actor string, ids []string) {
	for _, id := range ids {
		if claim := c.findClaim(id); claim != nil && !requestsTermination(claim) {
			c.reportViolation("an instance is terminated only if its NodeClaim requests it", "%s terminated %s, and %s has not requested it", actor, id, claim.Name)
		}
	}
}
