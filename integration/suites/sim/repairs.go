package sim

import (
	"fmt"
	"hash/crc32"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

const (
	// unhealthyCondition is the node condition for which a node is repaired after repairToleration. Its drain takes at
	// most repairGrace.
	unhealthyCondition            = corev1.NodeConditionType("StorageReady")
	repairToleration, repairGrace = time.Minute, time.Minute
	// brokenReason and clearableReason are the reasons of the condition. A reboot clears the second.
	brokenReason, clearableReason = "DiskFailed", "DiskHangs"
	// unhealthyReason is the reason of a repair.
	unhealthyReason = "Unhealthy"
)

// newRepairMatcher returns the policies of node repair, one of which reboots nodes.
func newRepairMatcher(terminateFirst bool) (*repair.Matcher, error) {
	replaces := repair.Policy{Condition: unhealthyCondition, Status: corev1.ConditionFalse, Toleration: repairToleration, GracePeriod: new(repairGrace), Action: repair.Replace}
	reboots := replaces
	reboots.Reason, reboots.Action = clearableReason, repair.Reboot
	matcher, err := repair.NewMatcher(repair.PolicySet{Unhealthy: intstr.FromString("50%"), TerminateFirst: terminateFirst, Policies: []repair.Policy{replaces, reboots}})
	if err != nil {
		return nil, fmt.Errorf("the policies of node repair: %w", err)
	}
	return matcher, nil
}

// sickenNode gives a node the condition that repairs it. Some nodes recover, and some must not be repaired.
func (c *chaos) sickenNode() {
	nodes := c.listObjects(cluster.Nodes)
	if len(nodes) == 0 {
		return
	}
	key := cluster.KeyOf(nodes[c.random.IntN(len(nodes))])
	reason := brokenReason
	if crc32.ChecksumIEEE([]byte(key.Name))%2 == 0 {
		reason = clearableReason
	}
	now, kept := metav1.NewTime(c.world.Now()), c.random.IntN(6) == 0
	c.world.Kube.ChangeObject(cluster.Nodes, key, func(o cluster.Object) {
		node := o.(*corev1.Node)
		if !sickSince(node).IsZero() {
			return
		}
		if kept {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, karpenter.DoNotRepairAnnotationKey, "true")
		}
		setCondition(node, corev1.NodeCondition{Type: unhealthyCondition, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: now})
	})
	if c.random.IntN(4) > 0 {
		return
	}
	c.endings = append(c.endings, ending{c.world.Now().Add(c.drawDuration(30, 150)), func() {
		c.world.Kube.ChangeObject(cluster.Nodes, key, func(o cluster.Object) {
			setCondition(o.(*corev1.Node), corev1.NodeCondition{Type: unhealthyCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.world.Now())})
		})
	}})
}

// setCondition replaces the condition of the same type.
func setCondition(node *corev1.Node, condition corev1.NodeCondition) {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == condition.Type {
			node.Status.Conditions[i] = condition
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, condition)
}

// sickSince returns since when a node is unhealthy; zero if it is healthy.
func sickSince(node *corev1.Node) time.Time {
	for _, condition := range node.Status.Conditions {
		if condition.Type == unhealthyCondition && condition.Status == corev1.ConditionFalse {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// repairChecker checks every confirmed repair.
type repairChecker struct {
	// nodes are the nodes at their last write, and recovered is when each recovered.
	nodes     map[string]*corev1.Node
	recovered map[string]time.Time
	// deadlineWritten is when the drain deadline of each NodeClaim was written last, by the clock of the replica that wrote it.
	deadlineWritten map[types.UID]time.Time
}

// observeWrite remembers the nodes, and when deadlines of drains were written.
func (r *repairChecker) observeWrite(c *checker, e memcluster.Effect) {
	if claim, ok := e.After.(*karpenter.NodeClaim); ok {
		r.recordDeadline(c, e, claim)
	}
	if e.Kind != cluster.Nodes {
		return
	}
	if r.nodes == nil {
		r.nodes, r.recovered = map[string]*corev1.Node{}, map[string]time.Time{}
	}
	before, _ := e.Before.(*corev1.Node)
	after, _ := e.After.(*corev1.Node)
	if after == nil {
		delete(r.nodes, e.Key.Name)
		return
	}
	r.nodes[e.Key.Name] = after
	if before != nil && !sickSince(before).IsZero() && sickSince(after).IsZero() {
		r.recovered[e.Key.Name] = e.At
	}
}

// recordDeadline records when a changed drain deadline was written.
func (r *repairChecker) recordDeadline(c *checker, e memcluster.Effect, claim *karpenter.NodeClaim) {
	key, had := karpenter.NodeClaimTerminationTimestampAnnotationKey, ""
	if before, ok := e.Before.(*karpenter.NodeClaim); ok {
		had = before.Annotations[key]
	}
	if r.deadlineWritten == nil {
		r.deadlineWritten = map[types.UID]time.Time{}
	}
	if claim.Annotations[key] != had {
		r.deadlineWritten[claim.UID] = c.clocks.readClock(e.Actor, e.At)
	}
}

// checkRepair checks that a repair begins for a node that is unhealthy for long enough and may be repaired.
func (r *repairChecker) checkRepair(c *checker, e memcluster.Effect, claim *karpenter.NodeClaim, p proposal) {
	node := r.nodes[claim.Status.NodeName]
	if p.Reason != unhealthyReason || node == nil || e.At.Sub(r.recovered[node.Name]) < time.Second {
		return
	}
	since := sickSince(node)
	if since.IsZero() || c.clocks.readClock(e.Actor, e.At).Sub(since) < repairToleration-time.Second || node.Annotations[karpenter.DoNotRepairAnnotationKey] != "" {
		c.reportViolation("only unhealthy nodes are repaired", "%s repairs %s of node %s, which is unhealthy since %s and has %v", e.Actor, claim.Name, node.Name, since, node.Annotations)
	}
}

// checkDeadline checks that the drain of a repaired node has the deadline of its policy.
func (r *repairChecker) checkDeadline(c *checker, e memcluster.Effect, claim *karpenter.NodeClaim, p proposal) {
	if p.Reason != unhealthyReason || c.mustGo(claim, p) {
		return
	}
	text := claim.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey]
	if at, err := time.Parse(time.RFC3339, text); err != nil || at.Sub(c.clocks.readClock(e.Actor, e.At)) > repairGrace {
		c.reportViolation("the drain of a repair is limited", "%s deletes %s with the deadline %q", e.Actor, claim.Name, text)
	}
}
