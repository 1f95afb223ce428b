package sim

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// plants break one promise each, as if the attacker had more rights or a service did not check.
var plants = map[string]func(*attacker){
	promiseForgery: func(a *attacker) {
		e, _ := event.Maker{Service: "interruption", Cluster: a.world.Identity()}.New(a.world.Now(), event.InstanceGone{InstanceID: "i-none", Shown: a.world.Now()}, nil)
		text, _ := e.Encode()
		q, _ := a.world.Broker.FindQueue(hostileCluster + "-lifecycle")
		a.recordSent(text, q.Send(context.Background(), queue.Outgoing{Source: "x", Type: "x", Body: text}))
	},
	promiseNeighbour: func(a *attacker) {
		for _, r := range a.world.Cloud.Records() {
			if isForeign(r) {
				_ = a.world.Cloud.Terminate(context.Background(), []string{r.ID})
			}
		}
	},
	promiseLaunches: func(a *attacker) {
		// The checker compares with what the EC2NodeClass selects.
		a.world.AWS.SecurityGroup.ID = "sg-other"
	},
	promiseLimits: func(a *attacker) {
		a.checker.limits.pools["default"] = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(1, resource.DecimalSI)}
	},
	promiseRemovals: func(a *attacker) {
		claim := a.pickClaim()
		for !claim.Status.Conditions.IsTrue("Initialized") || claim.DeletionTimestamp != nil {
			claim = a.pickClaim()
		}
		_ = a.world.Kube.ClientFor("lifecycle-0").Delete(context.Background(), cluster.NodeClaims, cluster.KeyOf(claim), claim.UID)
	},
	promiseUnproven: func(a *attacker) {
		for _, o := range a.listObjects(cluster.NodeClaims) {
			a.world.Kube.ChangeObject(cluster.NodeClaims, cluster.KeyOf(o), func(o cluster.Object) {
				o.(*karpenter.NodeClaim).Annotations["joist.sh/instance-gone"] = "2026-01-01T00:00:00Z"
			})
		}
	},
	promiseTermination: func(a *attacker) {
		for _, r := range a.world.Cloud.Records() {
			a.checker.checkCall(embedded.Call{Actor: "launcher-0", Port: "cloud", Verb: "terminate", About: r.ID}, nil)
		}
	},
	promiseOwners:   startOrphans,
	promiseRecovery: startOrphans,
	promiseDelay: func(a *attacker) {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "default", "never"
		pod.Spec.NodeSelector = map[string]string{"example.com/none": "x"}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
		_, _ = a.world.Kube.AsKubernetes("person").Create(context.Background(), pod)
	},
	promiseCrash: func(a *attacker) {
		a.checkCrash("planner-0", fault.F("handling a message", fault.Bug, "panic: planted"))
	},
	promiseQueues: func(a *attacker) {
		q := a.world.Broker.Queue("demo-unread", memqueue.QueueOptions{})
		for range maxQueued + 1 {
			_ = q.Send(context.Background(), queue.Outgoing{Source: "x", Type: "x", Body: []byte("{}")})
		}
	},
	promiseRejections: func(a *attacker) {
		a.sent["planted"] = &sentMessage{action: string(host.MoveToDLQ), kind: "planted"}
	},
}

// startOrphans starts more instances without NodeClaim than garbage collection removes at once.
func startOrphans(a *attacker) {
	_ = a.startInstances("orphans", map[string]string{"kubernetes.io/cluster/demo": "owned", "eks:eks-cluster-name": "demo", "karpenter.sh/nodepool": "x"}, 8)
}

// Each checker of HostilePromises reports a promise that is broken on purpose.
func TestHostileCheckersReport(t *testing.T) {
	for i, promise := range HostilePromises {
		t.Run(promise.Name, func(t *testing.T) {
			plant := plants[promise.Name]
			if plant == nil {
				t.Fatal("no plant breaks this promise")
			}
			report, err := runHostile(int64(i+1), hostileTenant, plant)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, v := range report.Violations {
				got[v.Promise] = true
			}
			if !got[promise.Name] {
				t.Errorf("the checker %s did not report it, but %v", promise.Checker, fmt.Sprint(got))
			}
		})
	}
}

// Seeds that failed although Joist was right: in 759 the tenant created a pod after the end of its attack, and in 802 forged
// messages ended NodeClaims of drained nodes while EC2 was terminating their instances, which counted against the limits.
func TestHostileSeedsAreJudgedRightly(t *testing.T) {
	for _, seed := range []int64{759, 802} {
		report, err := RunHostile(seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range report.Violations {
			t.Errorf("seed %d, attacker %s: %s", seed, report.Attacker, v)
		}
	}
}
