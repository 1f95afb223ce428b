package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// progress logs the visible changes.
type progress struct {
	// states is the last logged state of each pod, node, claim and instance.
	states map[string]string
	// pods is the pods' current state, and since is when it began.
	pods  string
	since time.Time
	// claims are the names of all claims so far.
	claims map[string]bool
	// unschedulable is set once the scheduler has reported an unschedulable pod.
	unschedulable bool
}

// steady is how long the pods' state must be stable before it is logged.
const steady = 150 * time.Millisecond

func (w *e2eCluster) logPhase(format string, args ...any) {
	w.Logf("▸ "+format, args...)
}

// recordStates logs the changes since the last call.
func (w *e2eCluster) recordStates() {
	now := map[string]string{"pods": w.progress.states["pods"]}
	if counts := "pods: " + w.podCounts(); counts != w.progress.pods {
		w.progress.pods, w.progress.since = counts, time.Now()
	}
	if time.Since(w.progress.since) >= steady {
		now["pods"] = w.progress.pods
	}
	for _, class := range cluster.ListCached[*karpenter.EC2NodeClass](w.Cache, cluster.NodeClasses) {
		if class.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
			now["class "+class.Name] = fmt.Sprintf("EC2NodeClass %s is ready: %d subnets, %d images, profile %s",
				class.Name, len(class.Status.Subnets), len(class.Status.AMIs), class.Status.InstanceProfile)
		}
	}
	for _, claim := range w.Claims() {
		w.progress.claims[claim.Name] = true
		now["claim "+claim.Name] = fmt.Sprintf("NodeClaim %s %s", claim.Name, claimState(claim))
	}
	for _, node := range w.Nodes() {
		now["node "+node.Name] = fmt.Sprintf("node %s %s", node.Name, w.nodeState(node))
	}
	for _, r := range w.Cloud.Records() {
		now["instance "+r.ID] = fmt.Sprintf("EC2 instance %s is %s", r.ID, instanceState(r))
	}
	w.logChanges(now)
}

// logChanges logs new and deleted objects.
func (w *e2eCluster) logChanges(now map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(w.progress.states)) {
		if kind, name, _ := strings.Cut(key, " "); now[key] == "" && (kind == "claim" || kind == "node") {
			w.Logf("%s %s is gone", map[string]string{"claim": "NodeClaim", "node": "node"}[kind], name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if w.progress.states[key] != now[key] {
			w.Logf("%s", now[key])
		}
	}
	w.progress.states = now
}

func (w *e2eCluster) pods() []*corev1.Pod { return w.Pods("inflate") }

func (w *e2eCluster) podCounts() string {
	counts := map[string]int{}
	for _, pod := range w.pods() {
		state := podState(pod)
		counts[state]++
		w.progress.unschedulable = w.progress.unschedulable || state == "unschedulable"
	}
	if len(counts) == 0 {
		return "none"
	}
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
	}
	return strings.Join(parts, ", ")
}

func podState(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "terminating"
	}
	if pod.Spec.NodeName != "" {
		return strings.ToLower(string(pod.Status.Phase)) + " on a node"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return "unschedulable"
		}
	}
	return "new"
}

// running counts the pods that run on ready nodes of Joist.
func (w *e2eCluster) running() int {
	ready := map[string]bool{}
	for _, node := range w.Nodes() {
		ready[node.Name] = node.DeletionTimestamp == nil && testbed.IsNodeReady(node)
	}
	n := 0
	for _, pod := range w.pods() {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && ready[pod.Spec.NodeName] {
			n++
		}
	}
	return n
}

func (w *e2eCluster) nodeState(node *corev1.Node) string {
	r, _ := w.Cloud.Record(testbed.InstanceID(node.Spec.ProviderID))
	switch {
	case !testbed.IsNodeReady(node) && !r.Ended.IsZero():
		return "is no longer ready"
	case !testbed.IsNodeReady(node):
		return "has joined"
	case testbed.IsDisrupted(node):
		return "is being drained"
	case node.Labels[karpenter.NodeInitializedLabelKey] == "true":
		return fmt.Sprintf("is initialized (%s, %s, %s)", r.Type, r.CapacityType, r.Zone)
	default:
		return fmt.Sprintf("Ready (%s, %s, %s)", r.Type, r.CapacityType, r.Zone)
	}
}

func instanceState(r memcloud.Record) string {
	if r.State != cloud.Pending {
		return string(r.State)
	}
	return fmt.Sprintf("launched: %s, %s, %s, $%.4f an hour", r.Type, r.CapacityType, r.Zone, r.PricePerHour)
}

func claimState(c *karpenter.NodeClaim) string {
	conditions := c.Status.Conditions
	switch {
	case c.DeletionTimestamp != nil && conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating):
		return "is drained, its instance will be terminated"
	case c.DeletionTimestamp != nil:
		return "is being deleted"
	case conditions.IsTrue(karpenter.ConditionTypeInitialized):
		return "is initialized"
	case conditions.IsTrue(karpenter.ConditionTypeRegistered):
		return "is registered as node " + c.Status.NodeName
	case c.Status.ProviderID != "":
		return "is bound to " + c.Status.ProviderID
	default:
		return "is created"
	}
}
