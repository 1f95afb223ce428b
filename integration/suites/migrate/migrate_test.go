package migrate

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// TestMove moves a cluster from Karpenter to Joist and back.
func TestMove(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: runs a control plane, Karpenter and seven services")
	}
	controller, err := testbed.BuildKarpenter()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := testbed.BuildBinaries()
	if err != nil {
		t.Fatal(err)
	}
	w := newMovedCluster(t)
	w.RunPhase("Karpenter launches nodes", func() { w.launchByKarpenter(controller) })
	w.RunPhase("Joist is installed next to Karpenter, and waits", func() { w.installBeside(dir) })
	w.RunPhase("Karpenter stops, and Joist adopts the nodes", w.takeOver)
	w.RunPhase("Joist launches and removes nodes", w.operate)
	w.RunPhase("Joist stops, and Karpenter adopts the nodes", func() { w.handBack(controller) })
	w.RunPhase("Karpenter launches and removes nodes, also Joist's", w.operateByKarpenter)
	w.RunPhase("the end", func() {
		w.StopKarpenter()
		w.Stop()
	})
}

// podsPerNode is how many pods fit on the largest type that the NodePool allows, with 4 vCPUs.
const podsPerNode = 3

// leads reports whether a holder of the Lease is a process of Karpenter.
func leads(holder string) bool { return holder != "" && holder != lease.KarpenterHolder }

func (w *movedCluster) launchByKarpenter(controller string) {
	w.Apply(manifests+"nodepool.yaml", map[string]string{"EKS_CLUSTER_NAME": testbed.ClusterName, "KARPENTER_NODE_ROLE": w.AWS.Role})
	w.Apply(manifests+"inflate.yaml", nil)
	w.createKarpenterQueue()
	w.scaleKarpenter(1)
	w.StartKarpenter(controller, "INTERRUPTION_QUEUE="+karpenterQueue)
	w.waitForHolder("Karpenter to hold its Lease", leads)
	w.WaitUntil(time.Minute, "the NodePool to be ready", w.isPoolReady)
	w.scale(2 * podsPerNode)
	w.waitForPods(2 * podsPerNode)
	w.requireKept(w.takeStock())
	if len(w.Claims()) < 2 || len(w.launchedBy(true)) > 0 {
		w.Errorf("Karpenter has %d NodeClaims, and Joist %v", len(w.Claims()), w.launchedBy(true))
	}
}

func (w *movedCluster) isPoolReady() bool {
	for _, pool := range cluster.ListCached[*karpenter.NodePool](w.Cache, cluster.NodePools) {
		return pool.Status.Conditions.IsTrue(karpenter.ConditionTypeReady)
	}
	return false
}

// installBeside runs both by mistake for a while: only Karpenter acts.
func (w *movedCluster) installBeside(dir string) {
	w.requireReport("before", false, "karpenter", map[string]string{"karpenter-version": "done", "crds": "done", "nodes": "done", "joist-installed": "ready", "karpenter-stopped": "blocked"})
	before, karpenters := w.takeStock(), w.holder()
	w.StartJoist(dir, false)
	w.WaitUntil(time.Minute, "both services of Joist to hold their own Leases", func() bool {
		for _, service := range []string{"watcher", "lifecycle"} {
			l, err := w.Kube.CoordinationV1().Leases(testbed.Namespace).Get(w.Context(), "joist-"+service, metav1.GetOptions{})
			if err != nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
				return false
			}
		}
		return true
	})
	launched := len(w.Claims())
	w.scale(3 * podsPerNode)
	w.waitForPods(3 * podsPerNode)
	if joists := w.launchedBy(true); len(w.Claims()) <= launched || len(joists) > 0 || w.holder() != karpenters {
		w.Errorf("%d NodeClaims before, %d now, of Joist: %v; the holder was %s and is %s", launched, len(w.Claims()), joists, karpenters, w.holder())
	}
	w.requireKept(before)
	// A notice while both are installed goes to both queues: Karpenter replaces the node, and Joist's copy waits.
	interrupted := w.interruptNode(w.launchedBy(false))
	w.waitUntilReplaced(interrupted, 3*podsPerNode)
	if joists := w.launchedBy(true); len(joists) > 0 || w.holder() != karpenters {
		w.Errorf("Joist launched %v for a notice while %s held the Lease", joists, karpenters)
	}
	w.requireKept(before.without(interrupted))
}

// writeOlderHashes gives hashes of another version to the NodePool, its class and their NodeClaims, as an older
// Karpenter does. The NodeClaims come first, as in the order in which such hashes are replaced.
func (w *movedCluster) writeOlderHashes() {
	const patch = `{"metadata":{"annotations":{"karpenter.sh/nodepool-hash":"1","karpenter.sh/nodepool-hash-version":"v2","karpenter.k8s.aws/ec2nodeclass-hash":"1","karpenter.k8s.aws/ec2nodeclass-hash-version":"v5"}}}`
	for _, c := range w.Claims() {
		w.patch(claimResource, c.Name, patch)
	}
	w.patch(classResource, "default", patch)
	w.patch(poolResource, "default", patch)
}

func (w *movedCluster) takeOver() {
	before := w.takeStock()
	w.StopKarpenter()
	w.scaleKarpenter(0)
	// Now neither acts. The notice waits in Joist's queues until Joist holds the Lease.
	interrupted := w.interruptNode(w.launchedBy(false))
	before = before.without(interrupted)
	w.writeOlderHashes()
	w.waitForHolder("Joist to hold Karpenter's Lease", func(holder string) bool { return holder == lease.KarpenterHolder })
	w.waitUntilReplaced(interrupted, 3*podsPerNode)
	if len(w.launchedBy(true)) == 0 {
		w.Error("Joist launched no node for the notice that came before it acted")
	}
	w.WaitUntil(time.Minute, "current hashes on all NodeClaims", w.areHashesCurrent)
	w.WaitUntil(time.Minute, "an instance profile of Joist", w.hasJoistsProfile)
	w.requireKept(before)
	w.requireReport("after the takeover", true, "joist", map[string]string{"karpenter-stopped": "done", "joist-active": "done", "nodes": "done"})
}

// areHashesCurrent reports whether all NodeClaims have the hashes of their NodePool and class.
func (w *movedCluster) areHashesCurrent() bool {
	for _, pool := range cluster.ListCached[*karpenter.NodePool](w.Cache, cluster.NodePools) {
		for _, class := range cluster.ListCached[*karpenter.EC2NodeClass](w.Cache, cluster.NodeClasses) {
			for _, c := range w.Claims() {
				for key, want := range map[string]string{
					karpenter.NodePoolHashAnnotationKey: pool.Annotations[karpenter.NodePoolHashAnnotationKey], karpenter.NodePoolHashVersionAnnotationKey: karpenter.NodePoolHashVersion,
					karpenter.EC2NodeClassHashAnnotationKey: class.Annotations[karpenter.EC2NodeClassHashAnnotationKey], karpenter.EC2NodeClassHashVersionAnnotationKey: karpenter.EC2NodeClassHashVersion,
				} {
					if c.Annotations[key] != want || want == "1" {
						return false
					}
				}
			}
		}
	}
	return true
}

// hasJoistsProfile reports whether the EC2NodeClass is ready with an instance profile of Joist. The messages for that
// follow the first inventory, with which Joist evaluates drift.
func (w *movedCluster) hasJoistsProfile() bool {
	for _, class := range cluster.ListCached[*karpenter.EC2NodeClass](w.Cache, cluster.NodeClasses) {
		own := class.Annotations["joist.sh/instance-profile"]
		return own != "" && class.Status.InstanceProfile == own && class.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) && w.isPoolReady()
	}
	return false
}

func (w *movedCluster) operate() {
	karpenters := w.launchedBy(false)
	w.scale(4 * podsPerNode)
	w.waitForPods(4 * podsPerNode)
	if len(w.launchedBy(true)) == 0 {
		w.Error("Joist launched no node")
	}
	w.waitUntilReplaced(w.interruptNode(w.launchedBy(true)), 4*podsPerNode)
	// A person removes a node that Karpenter launched.
	removed := karpenters[0]
	w.RequireNoError(w.objects.Resource(claimResource).Delete(w.Context(), removed, metav1.DeleteOptions{}))
	w.waitUntilRemoved(removed)
	w.waitForPods(4 * podsPerNode)
	// One node of each stays for the way back.
	for _, name := range []string{w.launchedBy(true)[0], w.launchedBy(false)[0]} {
		w.patch(claimResource, name, `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"}}}`)
	}
	// Consolidation removes nodes that are not needed any more.
	nodes := len(w.Nodes())
	w.scale(2 * podsPerNode)
	w.patch(poolResource, "default", `{"spec":{"disruption":{"consolidateAfter":"1s","budgets":[{"nodes":"2"}]}}}`)
	w.WaitUntil(2*time.Minute, "consolidation to remove a node", func() bool { return len(w.Nodes()) < nodes && len(w.Claims()) == len(w.Nodes()) })
	w.patch(poolResource, "default", `{"spec":{"disruption":{"consolidateAfter":"Never"}}}`)
	w.WaitUntil(2*time.Minute, "no disruption in progress", w.isCalm)
	w.waitForPods(2 * podsPerNode)
	w.RequireNoOrphans()
}

func (w *movedCluster) waitUntilRemoved(claim string) {
	w.Helper()
	w.WaitUntil(2*time.Minute, "NodeClaim "+claim+" to be removed", func() bool {
		for _, c := range w.Claims() {
			if c.Name == claim {
				return false
			}
		}
		return true
	})
}

// isCalm reports whether no node is being removed or will be.
func (w *movedCluster) isCalm() bool {
	for _, c := range w.Claims() {
		if c.DeletionTimestamp != nil || c.Annotations["joist.sh/proposal"] != "" || c.Status.ProviderID == "" {
			return false
		}
	}
	return len(w.Claims()) == len(w.RunningInstances()) && len(w.Claims()) == len(w.Nodes())
}

func (w *movedCluster) handBack(controller string) {
	w.requireReport("before the way back", true, "joist", map[string]string{"launches": "done", "deletion-approval": "ready", "hashes": "done", "karpenter-deployment": "ready"})
	before := w.takeStock()
	if len(w.launchedBy(true)) == 0 || len(w.launchedBy(false)) == 0 {
		w.Fatalf("NodeClaims of Joist: %v, of Karpenter: %v", w.launchedBy(true), w.launchedBy(false))
	}
	w.StopInCluster()
	// What `joist migrate --check` prints for the NodePool's finalizer.
	w.patch(poolResource, "default", `{"metadata":{"finalizers":null}}`)
	// Now neither acts. The notice waits in the queue of Karpenter, next to the notices of interruptions that Joist handled.
	// A node of Joist must remain for Karpenter to remove.
	interrupted := w.interruptNode(slices.Concat(w.launchedBy(true)[1:], w.launchedBy(false)))
	before = before.without(interrupted)
	w.scaleKarpenter(1)
	collected := w.StartKarpenterWithMetrics(controller, "INTERRUPTION_QUEUE="+karpenterQueue)
	w.waitForHolder("Karpenter to hold its Lease", leads)
	w.waitUntilReplaced(interrupted, 2*podsPerNode)
	w.WaitUntil(time.Minute, "Karpenter to compare instances and NodeClaims twice, and to evaluate drift", func() bool {
		return collected("instance.garbagecollection") >= 2 && collected("nodeclaim.garbagecollection") >= 1 && collected("nodeclaim.disruption") >= len(w.Claims())
	})
	w.requireKept(before)
	if !w.areHashesCurrent() {
		w.Error("the hashes of NodeClaims are not those of their NodePool and class")
	}
	w.requireReport("after the way back", false, "karpenter", map[string]string{"nodes": "done", "deletion-approval": "done", "hashes": "done", "karpenter-deployment": "done"})
}

func (w *movedCluster) operateByKarpenter() {
	joists := w.launchedBy(true)
	before := len(w.Claims())
	w.scale(4 * podsPerNode)
	w.waitForPods(4 * podsPerNode)
	if now := w.launchedBy(true); len(w.Claims()) <= before || strings.Join(now, " ") != strings.Join(joists, " ") {
		w.Errorf("Karpenter launched no node, or Joist did: %d NodeClaims before, %d now, of Joist %v, before %v", before, len(w.Claims()), now, joists)
	}
	w.RequireNoError(w.objects.Resource(claimResource).Delete(w.Context(), joists[0], metav1.DeleteOptions{}))
	w.waitUntilRemoved(joists[0])
	w.waitForPods(4 * podsPerNode)
	w.WaitUntil(time.Minute, "the instance to end", func() bool { return len(w.RunningInstances()) == len(w.Claims()) && len(w.Nodes()) == len(w.Claims()) })
	w.RequireNoOrphans()
}
