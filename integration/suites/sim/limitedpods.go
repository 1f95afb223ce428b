package sim

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// countLimitedPods returns how many of the pending pods the last plan rejects because of a limit, if a limit is
// reached.
func (c *checker) countLimitedPods(waiting []*corev1.Pod) int {
	if !c.isAtLimit() {
		return 0
	}
	limited := c.readLimitedPods()
	n := 0
	for _, pod := range waiting {
		if limited[string(pod.UID)] {
			n++
		}
	}
	return n
}

// isAtLimit reports whether a NodePool has no free capacity for its largest type.
func (c *checker) isAtLimit() bool {
	const largest = 4
	records := c.world.Cloud.Records()
	if c.prices.remainingPrice(sumPrices(records)) < c.prices.highest {
		return true
	}
	none := func(*karpenter.NodeClaim) bool { return false }
	for pool, have := range c.sumRunning(records, none) {
		limit := c.limits.pools[pool]
		nodes := limit[karpenter.ResourceNodes]
		if have.cpu+largest > limit.Cpu().Value() || have.nodes >= nodes.Value() {
			return true
		}
	}
	return false
}

// readLimitedPods reads the pods that the plan rejects because of limits from the blob store.
func (c *checker) readLimitedPods() map[string]bool {
	out := map[string]bool{}
	key := cluster.Key{Namespace: embedded.Namespace, Name: "joist-outbox"}
	object, err := c.world.Kube.AsKubernetes("checker").Get(context.Background(), cluster.ConfigMaps, key)
	if err != nil {
		return out
	}
	var outbox struct {
		Plan string `json:"plan"`
	}
	var plan struct {
		Unplaced []struct {
			Pods []struct {
				UID string `json:"uid"`
			} `json:"pods"`
			Rejections []struct {
				Rule string `json:"rule"`
			} `json:"rejections"`
		} `json:"unplaced"`
	}
	_ = json.Unmarshal([]byte(object.(*corev1.ConfigMap).Data["outbox.json"]), &outbox)
	if !c.readDocument("plans/"+outbox.Plan, &plan) {
		return out
	}
	for _, u := range plan.Unplaced {
		for _, r := range u.Rejections {
			for _, pod := range u.Pods {
				out[pod.UID] = out[pod.UID] || r.Rule == "limits"
			}
		}
	}
	return out
}
