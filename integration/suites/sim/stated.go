package sim

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// stated counts the pods of which the plan that passed last says that a limit
// of their pool keeps them waiting, if that is so: the pool runs as many nodes
// or CPUs, or spends as much, as it may, or so much that no type fits any more.
func (c *checker) stated(waiting []*corev1.Pod) int {
	if !c.atLimit() {
		return 0
	}
	limited := c.limitedPods()
	n := 0
	for _, pod := range waiting {
		if limited[string(pod.UID)] {
			n++
		}
	}
	return n
}

// atLimit reports whether some pool has no room for its largest type.
func (c *checker) atLimit() bool {
	const largest = 4
	if c.money.left(spent(c.world.Cloud.Records())) < c.money.dearest {
		return true
	}
	nobody := func(*karpenter.NodeClaim) bool { return false }
	for pool, have := range c.running(c.world.Cloud.Records(), nobody) {
		limit := c.limits.pools[pool]
		nodes := limit[karpenter.ResourceNodes]
		if have.cpu+largest > limit.Cpu().Value() || have.nodes >= nodes.Value() {
			return true
		}
	}
	return false
}

// limitedPods reads the plan out of the store, in its own way.
func (c *checker) limitedPods() map[string]bool {
	out := map[string]bool{}
	key := cluster.Key{Namespace: embedded.Namespace, Name: "joist-outbox"}
	object, err := c.world.Kube.World("checker").Get(context.Background(), cluster.ConfigMaps, key)
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
	if !c.document("plans/"+outbox.Plan, &plan) {
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
