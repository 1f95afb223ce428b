package sim

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// checkDeletionCost checks a deletion cost that lifecycle writes: only pods of ReplicaSets have one, and it is
// negative.
func (c *checker) checkDeletionCost(e memcluster.Effect) {
	pod, ok := e.After.(*corev1.Pod)
	if !ok || !strings.HasPrefix(e.Actor, "lifecycle-") {
		return
	}
	text, has := pod.Annotations[corev1.PodDeletionCost]
	before, _ := e.Before.(*corev1.Pod)
	if !has || before != nil && before.Annotations[corev1.PodDeletionCost] == text {
		return
	}
	c.occurrences["deletion cost written"]++
	owner := metav1.GetControllerOf(pod)
	if rank, err := strconv.Atoi(text); owner == nil || owner.Kind != "ReplicaSet" || err != nil || rank >= 0 {
		c.reportViolation("only pods of ReplicaSets have a deletion cost", "%s wrote %q on %s of %+v", e.Actor, text, e.Key, owner)
	}
}

// checkExpressions checks that launched NodeClaims have the results of the kubelet expressions.
func (c *checker) checkExpressions(claims []*karpenter.NodeClaim) {
	if !c.features.expressions {
		return
	}
	for _, claim := range claims {
		capacity := claim.Status.Capacity
		cores := capacity.Cpu().Value()
		if cores == 0 {
			continue
		}
		c.occurrences["expressions evaluated"] = 1
		reserved := capacity.Cpu().MilliValue() - claim.Status.Allocatable.Cpu().MilliValue()
		if pods := capacity.Pods().Value(); pods != podsPerCore*cores || reserved != reservedPerCore*cores {
			c.reportViolation("NodeClaims have the results of expressions", "%s with %d cores has %d pods and reserves %dm", claim.Name, cores, pods, reserved)
		}
	}
}

// checkMaxPods checks that the kubelet of a node got the result of the expression from its user data.
func (c *checker) checkMaxPods(node *corev1.Node) {
	cores, pods := node.Status.Capacity.Cpu().Value(), node.Status.Allocatable.Pods().Value()
	if c.features.expressions && pods != podsPerCore*cores {
		c.reportViolation("nodes have the results of expressions", "%s with %d cores has %d pods", node.Name, cores, pods)
	}
}

// checkDefaultSpread checks that the pods of a batch which a Service selects have the default constraints.
func (c *checker) checkDefaultSpread(batchDigest string) {
	var batch struct {
		Pending []struct {
			Pods []struct {
				Name     string `json:"name"`
				Workload string `json:"workload"`
			} `json:"pods"`
			Spec struct {
				Spread []corev1.TopologySpreadConstraint `json:"spread"`
			} `json:"spec"`
		} `json:"pending"`
	}
	if !c.features.spread || !c.readBatch(batchDigest, &batch) {
		return
	}
	for _, class := range batch.Pending {
		if w := class.Pods[0].Workload; w != "web" && w != "batch" {
			continue
		}
		c.occurrences["pod with default constraints"] = 1
		if s := class.Spec.Spread; len(s) != 1 || s[0].TopologyKey != corev1.LabelTopologyZone || s[0].LabelSelector == nil {
			c.reportViolation("pods have the default spread constraints", "batch %s: pod %s has %+v", batchDigest, class.Pods[0].Name, s)
		}
	}
}
