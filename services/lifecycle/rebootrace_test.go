package lifecycle_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// A replica that was paused between the decision that a reboot has failed and the deletion does not delete a NodeClaim
// whose node has recovered meanwhile. Nothing of the failure is left on it.
func TestReplicaPausedBeforeFailedRebootEnds(t *testing.T) {
	for name, before := range map[string]memcluster.Verb{"before it marks the failure": memcluster.VerbUpdate, "before the deletion": memcluster.VerbDelete} {
		t.Run(name, func(t *testing.T) {
			p := startReboot(t)
			p.deliver(event.Confirmed, "")
			p.advanceWithPeers(2 * time.Minute)
			p.setClaim("old-0", func(c *karpenter.NodeClaim) { // The node was rebooted 20 minutes ago, and is not ready.
				progress := fmt.Sprintf(`{"since":%q,"issued":%q}`, p.now.Add(-21*time.Minute).Format(time.RFC3339), p.now.Add(-20*time.Minute).Format(time.RFC3339))
				annotateAs(c, nodeclaim.RebootAnnotation, progress)
			})
			paused := false
			p.startService(&pausedClient{p.ClientFor("lifecycle"), before, func() {
				paused = true
				p.setClaim("old-0", func(c *karpenter.NodeClaim) {
					nodeclaim.RemoveRebootProgress(c)
					delete(c.Annotations, karpenter.NodeClaimTerminationTimestampAnnotationKey)
					c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeRebooting, Status: metav1.ConditionFalse, Reason: karpenter.RebootSucceededReason}, p.now)
				})
			}}, withReboots(t))
			p.advanceWithPeers(5 * time.Second)
			c := p.getClaim("old-0")
			if !paused || c.DeletionTimestamp != nil || c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] != "" {
				t.Errorf("paused %t: the NodeClaim is deleted at %v and has %v", paused, c.DeletionTimestamp, c.Annotations)
			}
		})
	}
}

// advanceWithLag advances the time in steps of a second with a cache that does not receive changes of the kinds, and
// returns the number of requests to reboot that are sent.
func (p *rebootScenario) advanceWithLag(d time.Duration, kinds ...cluster.Kind) int {
	p.t.Helper()
	for _, kind := range kinds {
		p.cache.SetDelay(kind, time.Hour)
	}
	requests := 0
	for end := p.now.Add(d); p.now.Before(end); {
		p.now = p.now.Add(time.Second)
		p.cache.Advance(p.now)
		if err := p.svc.Step(p.t.Context()); err != nil {
			p.t.Fatal(err)
		}
		for _, e := range p.takeSent() {
			if e.Type == event.RebootRequestedType {
				requests++
			}
		}
	}
	return requests
}

// A node is not rebooted while a pod runs on it that the cache does not contain yet: it was bound before kube-scheduler
// had the taint. The pod is evicted.
func TestRebootWaitsForUnseenPod(t *testing.T) {
	p := startReboot(t)
	p.deliver(event.Confirmed, "")
	if err := p.DeletePod(t.Context(), cluster.Key{Namespace: "default", Name: "web"}, "", 0); err != nil {
		t.Fatal(err)
	}
	p.cache.DeliverAll()
	p.cache.SetDelay(cluster.Pods, time.Hour)
	p.addPod("old-0", "late")
	if requests := p.advanceWithLag(30*time.Second, cluster.Pods); requests > 0 {
		t.Errorf("%d reboots are requested while the pod runs", requests)
	}
	pod, err := cluster.Get[*corev1.Pod](t.Context(), p.Server, cluster.Pods, cluster.Key{Namespace: "default", Name: "late"})
	if err == nil && pod.DeletionTimestamp == nil {
		t.Error("the pod is not evicted")
	}
}

// A node that cannot be read is not rebooted, and the reconcile reports the error. The reboot goes on once it can be read.
func TestRebootWaitsForUnreadableNode(t *testing.T) {
	p := startReboot(t)
	p.deliver(event.Confirmed, "")
	if err := p.DeletePod(t.Context(), cluster.Key{Namespace: "default", Name: "web"}, "", 0); err != nil {
		t.Fatal(err)
	}
	p.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbGet, Kind: cluster.Nodes, As: fault.Unknown})
	var failed error
	for range 15 {
		p.now = p.now.Add(time.Second)
		p.cache.DeliverAll()
		failed = errors.Join(failed, p.svc.Step(t.Context()))
	}
	if sent := typesAndSubjects(p.takeSent()); len(sent) > 0 || !fault.Is(failed, fault.Unknown) {
		t.Errorf("sent %v; the reconciles report the error %v", sent, failed)
	}
	p.ClearFaults()
	p.advanceWithPeers(3 * time.Minute)
	p.expectRecovered("")
}

// A reboot that is done meanwhile is not requested again by a replica whose cache does not show it, even if the cache is
// minutes late.
func TestRebootIsNotRepeatedByLateCache(t *testing.T) {
	for name, kinds := range map[string][]cluster.Kind{
		"a late NodeClaim": {cluster.NodeClaims}, "a late node": {cluster.Nodes}, "both": {cluster.NodeClaims, cluster.Nodes},
	} {
		t.Run(name, func(t *testing.T) {
			p := startReboot(t)
			p.answers, p.refusal = false, "no answer"
			p.deliver(event.Confirmed, "")
			p.advanceWithPeers(8 * time.Second)
			operation := nodeclaim.RebootOperation(p.getClaim("old-0"))
			if operation == "" {
				t.Fatal("no reboot is requested")
			}
			for _, kind := range kinds {
				p.cache.SetDelay(kind, time.Hour)
			}
			// EC2 reboots the node just before the request expires, and another replica completes the reboot.
			if requests := p.advanceWithLag(105*time.Second, kinds...); requests > 0 {
				t.Fatalf("%d requests while the first is valid", requests)
			}
			p.setClaim("old-0", func(c *karpenter.NodeClaim) { nodeclaim.RecordRebootAnswer(c, "", p.now) })
			p.updateNodeOf("old-0", func(n *corev1.Node) { n.Status.NodeInfo.BootID, n.Spec.Taints = "boot-1", nil })
			if requests := p.advanceWithLag(2*time.Minute, kinds...); requests > 0 {
				t.Errorf("%d requests after the reboot", requests)
			}
			if taints := p.getNode("old-0").Spec.Taints; len(taints) > 0 {
				t.Errorf("the node in use gets the taints %v", taints)
			}
		})
	}
}

// A reboot that Karpenter has issued is not requested again by a replica whose cache does not show it. Of Karpenter's step only the
// reason of the condition is new.
func TestRebootByKarpenterIsNotRepeated(t *testing.T) {
	p := startReboot(t)
	p.answers, p.refusal = false, "no answer"
	p.deliver(event.Confirmed, "")
	p.advanceWithPeers(8 * time.Second)
	p.setClaim("old-0", func(c *karpenter.NodeClaim) {
		condition, _ := c.Status.Conditions.Get(karpenter.ConditionTypeRebooting)
		condition.Reason = karpenter.RebootIssuedReason
		c.Status.Conditions = c.Status.Conditions.With(condition, p.now)
	})
	if requests := p.advanceWithLag(4*time.Minute, cluster.NodeClaims); requests > 0 {
		t.Errorf("%d requests after Karpenter's reboot", requests)
	}
}
