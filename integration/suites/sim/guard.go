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

// guard follows every write to the API server and judges each removal of a pod by
// lifecycle at the moment at which it took place: a budget is never taken below its
// minimum, and a pod that must not be disrupted is let be, before the time of its
// node forces it.
type guard struct {
	pods        map[cluster.Key]*corev1.Pod
	budgets     map[cluster.Key]*policyv1.PodDisruptionBudget
	deployments map[cluster.Key]*appsv1.Deployment
	nodes       map[cluster.Key]*corev1.Node
	// claims are by their instance: what a claim says of its node may come late.
	claims map[string]*karpenter.NodeClaim
	// machines are the providerIDs of all nodes that there ever were, by their names.
	machines map[string]string
}

func newGuard() guard {
	return guard{
		pods: map[cluster.Key]*corev1.Pod{}, budgets: map[cluster.Key]*policyv1.PodDisruptionBudget{},
		deployments: map[cluster.Key]*appsv1.Deployment{}, nodes: map[cluster.Key]*corev1.Node{}, claims: map[string]*karpenter.NodeClaim{},
		machines: map[string]string{},
	}
}

// follow takes the writes since it was last called.
func (g *guard) follow(c *checker) {
	for _, e := range c.world.Kube.Effects() {
		if before, ok := e.Before.(*corev1.Pod); ok && before.DeletionTimestamp == nil && (e.After == nil || e.After.GetDeletionTimestamp() != nil) {
			switch {
			case strings.HasPrefix(e.Actor, "lifecycle-"):
				g.removed(c, e, before)
				c.rate.removed(c, e, before, g.claimUnder(before))
			case e.Actor == "replicaset-controller":
				c.rate.unwanted(before)
			}
		}
		c.sagas.follow(c, e)
		c.limits.follow(c, e)
		c.rate.scaled(e, g.pods)
		learn(g.pods, e)
		learn(g.budgets, e)
		learn(g.deployments, e)
		learn(g.nodes, e)
		if claim, ok := e.After.(*karpenter.NodeClaim); ok && claim.Status.ProviderID != "" {
			g.claims[claim.Status.ProviderID] = claim
		}
		if node, ok := e.After.(*corev1.Node); ok && node.Spec.ProviderID != "" {
			g.machines[node.Name] = node.Spec.ProviderID
		}
	}
	c.world.Kube.Forget()
}

// learn keeps the objects of one type as they are.
func learn[T cluster.Object](known map[cluster.Key]T, e memcluster.Effect) {
	if after, ok := e.After.(T); ok {
		known[e.Key] = after
	} else if _, ok := e.Before.(T); ok {
		delete(known, e.Key)
	}
}

func (g *guard) removed(c *checker, e memcluster.Effect, pod *corev1.Pod) {
	if g.forced(pod, e.At) || g.orphaned(c, pod) {
		return
	}
	if why := protected(pod, e.At); why != "" {
		c.violate("a protected pod is let be", "%s removed %s, which is %s", e.Actor, e.Key, why)
	}
	for _, b := range g.budgets {
		if !covers(b, pod) || !runs(pod) {
			continue
		}
		if left, least := g.healthy(b)-1, g.least(b); left < least {
			c.violate("a budget is kept", "%s removed %s of budget %s, which has %d pods left and needs %d", e.Actor, e.Key, b.Name, left, least)
		}
	}
}

// forced reports whether the pod's grace must have begun by then for its node to be
// empty in time.
func (g *guard) forced(pod *corev1.Pod, now time.Time) bool {
	claim := g.claimUnder(pod)
	if claim == nil {
		return false
	}
	ends, err := time.Parse(time.RFC3339, claim.Annotations["karpenter.sh/nodeclaim-termination-timestamp"])
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	return err == nil && !now.Before(ends.Add(-grace))
}

// claimUnder is the claim of the pod's node; nil where there is none.
func (g *guard) claimUnder(pod *corev1.Pod) *karpenter.NodeClaim {
	node := g.nodes[cluster.Key{Name: pod.Spec.NodeName}]
	if node == nil {
		return nil
	}
	return g.claims[node.Spec.ProviderID]
}

// orphaned reports whether the pod's node is gone, and its machine has ended as well:
// the pod does not run then, whatever its status says until Kubernetes collects it.
func (g *guard) orphaned(c *checker, pod *corev1.Pod) bool {
	if g.nodes[cluster.Key{Name: pod.Spec.NodeName}] != nil {
		return false
	}
	machine := g.machines[pod.Spec.NodeName]
	return slices.ContainsFunc(c.world.Cloud.Records(), func(r memcloud.Record) bool {
		return !r.Ended.IsZero() && strings.HasSuffix(machine, "/"+r.ID)
	})
}

// protected says why the pod must not be disrupted; "" when it may be.
func protected(pod *corev1.Pod, now time.Time) string {
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

// covers compares labels as the budgets of the simulator select by them.
func covers(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	return b.Namespace == pod.Namespace && b.Spec.Selector.MatchLabels["app"] == pod.Labels["app"]
}

// runs reports whether the pod counts for its budget.
func runs(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return pod.DeletionTimestamp == nil
		}
	}
	return false
}

func (g *guard) healthy(b *policyv1.PodDisruptionBudget) int {
	n := 0
	for _, pod := range g.pods {
		if covers(b, pod) && runs(pod) {
			n++
		}
	}
	return n
}

// least is how many pods of a budget have to run.
func (g *guard) least(b *policyv1.PodDisruptionBudget) int {
	if b.Spec.MinAvailable != nil {
		return b.Spec.MinAvailable.IntValue()
	}
	d := g.deployments[cluster.Key{Namespace: b.Namespace, Name: b.Name}]
	return int(*d.Spec.Replicas) - b.Spec.MaxUnavailable.IntValue()
}

// drainsEnd reports whether no drain is under way but those that a budget or an
// annotation keeps, and whether those say so: each names such a pod.
func (c *checker) drainsEnd() bool {
	for _, claim := range c.claims() {
		if claim.DeletionTimestamp == nil {
			continue
		}
		by := c.guard.keepers(claim.Status.ProviderID, c.world.Now())
		if claim.Status.Conditions.True("InstanceTerminating") || !names(claim, by) {
			return false
		}
	}
	return true
}

// keepers are the pods that keep the node of an instance from being drained.
func (g *guard) keepers(instance string, now time.Time) []string {
	var out []string
	for key, pod := range g.pods {
		node := g.nodes[cluster.Key{Name: pod.Spec.NodeName}]
		if node == nil || instance == "" || node.Spec.ProviderID != instance || !remains(pod) {
			continue
		}
		kept := protected(pod, now) != ""
		for _, b := range g.budgets {
			kept = kept || covers(b, pod) && runs(pod) && g.healthy(b) <= g.least(b)
		}
		if kept {
			out = append(out, key.String())
		}
	}
	return out
}

// names reports whether the claim tells one of them.
func names(claim *karpenter.NodeClaim, pods []string) bool {
	drained, _ := claim.Status.Conditions.Get("Drained")
	for _, pod := range pods {
		if strings.Contains(drained.Message, pod) {
			return true
		}
	}
	return false
}
