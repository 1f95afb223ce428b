package sim

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// evictionChecker checks each pod that lifecycle removes at the time of the write: a PodDisruptionBudget must keep
// its minimum, and a protected pod stays until the deadline of its node by the clock of lifecycle.
type evictionChecker struct {
	pods        map[cluster.Key]*corev1.Pod
	budgets     map[cluster.Key]*policyv1.PodDisruptionBudget
	deployments map[cluster.Key]*appsv1.Deployment
	nodes       map[cluster.Key]*corev1.Node
	// claims are keyed by instance, because the node name of a NodeClaim may be written late.
	claims map[string]*karpenter.NodeClaim
	// providerIDs are the provider ids of all nodes that ever existed, by name.
	providerIDs map[string]string
}

func newEvictionChecker() evictionChecker {
	return evictionChecker{
		pods: map[cluster.Key]*corev1.Pod{}, budgets: map[cluster.Key]*policyv1.PodDisruptionBudget{},
		deployments: map[cluster.Key]*appsv1.Deployment{}, nodes: map[cluster.Key]*corev1.Node{}, claims: map[string]*karpenter.NodeClaim{},
		providerIDs: map[string]string{},
	}
}

// observeWrites checks the writes since its last call.
func (g *evictionChecker) observeWrites(c *checker) {
	for _, e := range c.world.Kube.Effects() {
		if before, ok := e.Before.(*corev1.Pod); ok && before.DeletionTimestamp == nil && (e.After == nil || e.After.GetDeletionTimestamp() != nil) {
			switch {
			case strings.HasPrefix(e.Actor, "lifecycle-"):
				g.checkRemoval(c, e, before)
				c.rate.checkEviction(c, e, before, g.claimOfPod(before))
			case e.Actor == "replicaset-controller":
				c.rate.recordUnwanted(before)
			}
		}
		c.checkDeletionCost(e)
		c.repairs.observeWrite(c, e)
		c.disruptions.observeWrite(c, e)
		c.paths.observeWrite(c, e)
		c.limits.observeWrite(c, e)
		c.hostile.observeWrite(c, e)
		c.rate.recordScaling(e, g.pods)
		storeObject(g.pods, e)
		storeObject(g.budgets, e)
		storeObject(g.deployments, e)
		storeObject(g.nodes, e)
		if claim, ok := e.After.(*karpenter.NodeClaim); ok && claim.Status.ProviderID != "" {
			g.claims[claim.Status.ProviderID] = claim
		}
		if node, ok := e.After.(*corev1.Node); ok && node.Spec.ProviderID != "" {
			g.providerIDs[node.Name] = node.Spec.ProviderID
		}
	}
	c.world.Kube.ClearEffects()
}

// storeObject keeps the current objects of one type.
func storeObject[T cluster.Object](known map[cluster.Key]T, e memcluster.Effect) {
	if after, ok := e.After.(T); ok {
		known[e.Key] = after
	} else if _, ok := e.Before.(T); ok {
		delete(known, e.Key)
	}
}

func (g *evictionChecker) checkRemoval(c *checker, e memcluster.Effect, pod *corev1.Pod) {
	now := c.clocks.readClock(e.Actor, e.At)
	if g.isForced(pod, now) || g.isOnEndedInstance(c, pod) {
		return
	}
	if why := protectionReason(pod, now); why != "" {
		c.reportViolation("protected pods are not evicted", "%s evicted %s, which is %s", e.Actor, e.Key, why)
	}
	for _, b := range g.budgets {
		if !coversPod(b, pod) || !isReady(pod) {
			continue
		}
		if left, least := g.countReady(b)-1, g.minimumReady(b); left < least {
			c.reportViolation("PodDisruptionBudgets are respected", "%s evicted %s of budget %s, which then has %d ready pods and needs %d", e.Actor, e.Key, b.Name, left, least)
		}
	}
}

// isForced reports whether the grace period of the pod must have begun for the node to be empty by its deadline.
func (g *evictionChecker) isForced(pod *corev1.Pod, now time.Time) bool {
	claim := g.claimOfPod(pod)
	if claim == nil {
		return false
	}
	ends, err := time.Parse(time.RFC3339, claim.Annotations["karpenter.sh/nodeclaim-termination-timestamp"])
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	return err == nil && !now.Before(ends.Add(-grace))
}

// claimOfPod returns the NodeClaim of the pod's node, or nil.
func (g *evictionChecker) claimOfPod(pod *corev1.Pod) *karpenter.NodeClaim {
	node := g.nodes[cluster.Key{Name: pod.Spec.NodeName}]
	if node == nil {
		return nil
	}
	return g.claims[node.Spec.ProviderID]
}

// isOnEndedInstance reports whether the pod's node is deleted and its instance terminated. Such a pod does not
// run, even if its status is Running.
func (g *evictionChecker) isOnEndedInstance(c *checker, pod *corev1.Pod) bool {
	if g.nodes[cluster.Key{Name: pod.Spec.NodeName}] != nil {
		return false
	}
	machine := g.providerIDs[pod.Spec.NodeName]
	return slices.ContainsFunc(c.world.Cloud.Records(), func(r memcloud.Record) bool {
		return !r.Ended.IsZero() && strings.HasSuffix(machine, "/"+r.ID)
	})
}

// protectionReason returns why the pod must not be disrupted, or "".
func protectionReason(pod *corev1.Pod, now time.Time) string {
	text := pod.Annotations["karpenter.sh/do-not-disrupt"]
	length, err := time.ParseDuration(text)
	switch {
	case text == "true":
		return "not to be disrupted"
	case err != nil || pod.Status.StartTime != nil && !now.Before(pod.Status.StartTime.Add(length)):
		return ""
	case pod.Status.StartTime == nil:
		return "not to be disrupted for " + text + ", and has not begun"
	}
	return "not to be disrupted until " + pod.Status.StartTime.Add(length).UTC().Format("15:04:05")
}

// coversPod compares the labels by which the budgets of the simulator select.
func coversPod(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	return b.Namespace == pod.Namespace && b.Spec.Selector.MatchLabels["app"] == pod.Labels["app"]
}

// isReady reports whether the pod counts for its budget.
func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return pod.DeletionTimestamp == nil
		}
	}
	return false
}

func (g *evictionChecker) countReady(b *policyv1.PodDisruptionBudget) int {
	n := 0
	for _, pod := range g.pods {
		if coversPod(b, pod) && isReady(pod) {
			n++
		}
	}
	return n
}

// minimumReady returns how many pods of a budget must be ready.
func (g *evictionChecker) minimumReady(b *policyv1.PodDisruptionBudget) int {
	if b.Spec.MinAvailable != nil {
		return b.Spec.MinAvailable.IntValue()
	}
	d := g.deployments[cluster.Key{Namespace: b.Namespace, Name: b.Name}]
	return int(*d.Spec.Replicas) - b.Spec.MaxUnavailable.IntValue()
}

// areDrainsComplete reports whether each remaining drain is blocked by a budget or annotation and names such a
// pod.
func (c *checker) areDrainsComplete() bool {
	for _, claim := range c.readClaims() {
		if claim.DeletionTimestamp == nil {
			continue
		}
		by := c.evictions.blockingPods(claim.Status.ProviderID, c.world.Now())
		if claim.Status.Conditions.IsTrue("InstanceTerminating") || !namesAny(claim, by) {
			return false
		}
	}
	return true
}

// blockingPods returns the pods that block the drain of an instance's node.
func (g *evictionChecker) blockingPods(instance string, now time.Time) []string {
	var out []string
	for key, pod := range g.pods {
		node := g.nodes[cluster.Key{Name: pod.Spec.NodeName}]
		if node == nil || instance == "" || node.Spec.ProviderID != instance || !mustBeDrained(pod) {
			continue
		}
		kept := protectionReason(pod, now) != ""
		for _, b := range g.budgets {
			kept = kept || coversPod(b, pod) && isReady(pod) && g.countReady(b) <= g.minimumReady(b)
		}
		if kept {
			out = append(out, key.String())
		}
	}
	return out
}

// namesAny reports whether the condition Drained names one of the pods.
func namesAny(claim *karpenter.NodeClaim, pods []string) bool {
	drained, _ := claim.Status.Conditions.Get("Drained")
	for _, pod := range pods {
		if strings.Contains(drained.Message, pod) {
			return true
		}
	}
	return false
}
