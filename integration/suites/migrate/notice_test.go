package migrate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// karpenterQueue is the interruption queue of Karpenter. Joist has its own, as the guide recommends, so that each gets every notice.
const karpenterQueue = "Karpenter-" + testbed.ClusterName

// createKarpenterQueue creates the queue with the rules of Karpenter's CloudFormation template.
func (w *movedCluster) createKarpenterQueue() {
	w.Helper()
	w.Broker.Queue(karpenterQueue, memqueue.QueueOptions{Visibility: 30 * time.Second, Retention: 5 * time.Minute})
	w.RequireNoError(w.Broker.Bus("default").PutRule(memqueue.Rule{
		Name: "SpotInterruptionRule", Pattern: `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`, Targets: []memqueue.Target{{Queue: karpenterQueue}},
	}))
}

// notice is a spot interruption warning.
type notice struct {
	instance string
	warned   time.Time
	// lost are the objects that end with the instance.
	lost []string
}

// interruptNode sends a warning for a spot instance of one of the NodeClaims.
func (w *movedCluster) interruptNode(claims []string) notice {
	w.Helper()
	for _, c := range w.Claims() {
		id := testbed.InstanceID(c.Status.ProviderID)
		r, _ := w.Cloud.Record(id)
		if !slices.Contains(claims, c.Name) || r.CapacityType != cloud.Spot || c.DeletionTimestamp != nil {
			continue
		}
		out := notice{instance: id, warned: time.Now(), lost: []string{"NodeClaim " + c.Name, "Node " + c.Status.NodeName, "instance " + id}}
		if !w.Cloud.InterruptSpot(id) {
			w.Fatalf("EC2 sends no warning for %s", id)
		}
		w.Logf("EC2 warns that it will interrupt %s, of NodeClaim %s", id, c.Name)
		return out
	}
	w.Fatalf("none of the NodeClaims %v has a spot instance", claims)
	return notice{}
}

// waitUntilReplaced waits until the interrupted node is gone and n pods run, which must be before EC2 ends the instance.
func (w *movedCluster) waitUntilReplaced(n notice, pods int) {
	w.Helper()
	w.WaitUntil(memcloud.SpotNotice, fmt.Sprintf("the node of %s to be replaced", n.instance), func() bool {
		now := w.takeStock()
		for _, name := range n.lost {
			if now[name] != "" {
				return false
			}
		}
		return w.CountRunningPods("inflate") == pods
	})
	took := time.Since(n.warned)
	w.Logf("the node of %s was replaced %.1f s after the warning", n.instance, took.Seconds())
	if took >= memcloud.SpotNotice {
		w.Errorf("EC2 ended %s before its pods had moved", n.instance)
	}
	w.waitForPods(pods)
}

// without returns what remains of a stock after the loss of a node.
func (p possession) without(n notice) possession {
	out := maps.Clone(p)
	for _, name := range n.lost {
		delete(out, name)
	}
	return out
}
