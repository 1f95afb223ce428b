package e2e

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/lambdaruntime"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// TestFunctions runs the services that support Lambda as functions.
// AWS's own runtime interface emulator runs them.
func TestFunctions(t *testing.T) { runScenario(t, true) }

// TestPollers runs all services as pollers and loops.
func TestPollers(t *testing.T) { runScenario(t, false) }

const (
	replicas = 5
	// manifests are the demo's: a pool of small Graviton types that prefers spot.
	manifests = testbed.Root + "/services/cli/internal/demo/manifests/"
	// consolidateAfter replaces the manifest's ten minutes.
	consolidateAfter = "5s"
	// budget replaces the default budget of 10 %, which is one of five nodes.
	budget = 2
)

// e2eCluster is a testbed with a log of its changes.
type e2eCluster struct {
	*testbed.TestBed
	progress progress
}

// newCluster starts a testbed and logs every change. The emulator is the program that runs functions.
func newCluster(t *testing.T, emulator string) *e2eCluster {
	t.Helper()
	w := &e2eCluster{progress: progress{states: map[string]string{}, claims: map[string]bool{}}}
	w.TestBed = testbed.New(t, testbed.Options{
		Look: func() { w.recordStates() }, Audit: true, LambdaEmulator: emulator,
		Values: []string{
			"settings.featureGates.nodeOverlay=true", "settings.featureGates.capacityBuffer=true",
			"settings.schedulerConfig.podTopologySpread.defaultConstraints[0].maxSkew=5",
			"settings.schedulerConfig.podTopologySpread.defaultConstraints[0].topologyKey=topology.kubernetes.io/zone",
			"settings.schedulerConfig.podTopologySpread.defaultConstraints[0].whenUnsatisfiable=ScheduleAnyway",
		},
	})
	return w
}

func runScenario(t *testing.T, lambda bool) {
	if testing.Short() {
		t.Skip("-short: runs a control plane and seven services, twice")
	}
	t.Parallel()
	dir, err := testbed.BuildBinaries()
	if err != nil {
		t.Fatal(err)
	}
	runBinaries(t, dir, lambda)
}

// runBinaries runs the scenario with the binaries of a folder.
func runBinaries(t *testing.T, dir string, lambda bool) {
	t.Helper()
	emulator := ""
	if lambda {
		var err error
		if emulator, err = lambdaruntime.EmulatorTool.Build(t.Context(), testbed.Root); err != nil {
			t.Fatal(err)
		}
	}
	w := newCluster(t, emulator)
	w.StartJoist(dir, lambda)
	w.checkRights()
	w.RunPhase("the NodePool and the EC2NodeClass", w.applied)
	w.RunPhase("0→5", w.inflate)
	w.RunPhase("a spot interruption and a crash", w.interrupt)
	w.RunPhase("5→0", w.deflate)
	w.RunPhase("shutdown", w.end)
}

func (w *e2eCluster) applied() {
	w.logPhase("kubectl apply: the EC2NodeClass and the NodePool, and a Deployment of 0 replicas")
	w.Apply(manifests+"nodepool.yaml", map[string]string{"EKS_CLUSTER_NAME": testbed.ClusterName, "KARPENTER_NODE_ROLE": w.AWS.Role})
	w.Apply(manifests+"inflate.yaml", nil)
	w.Apply("testdata/gated.yaml", nil)
	client, err := dynamic.NewForConfig(w.Plane.Config)
	w.RequireNoError(err)
	patch := fmt.Sprintf(`{"spec":{"disruption":{"consolidateAfter":%q,"budgets":[{"nodes":"%d"}]}}}`, consolidateAfter, budget)
	pools := client.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"})
	_, err = pools.Patch(w.Context(), "default", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.RequireNoError(err)
	w.Logf("the pool's consolidateAfter is %s instead of 10m, and its budget %d nodes instead of 10%%, to shorten the test", consolidateAfter, budget)
	w.WaitUntil(time.Minute, "the NodePool to be ready", func() bool {
		for _, pool := range cluster.ListCached[*karpenter.NodePool](w.Cache, cluster.NodePools) {
			return pool.Status.Conditions.IsTrue(karpenter.ConditionTypeReady)
		}
		return false
	})
}

func (w *e2eCluster) scale(n int) {
	w.Helper()
	w.logPhase("kubectl scale deployment inflate --replicas %d", n)
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, n)
	_, err := w.Kube.AppsV1().Deployments("default").Patch(w.Context(), "inflate", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.RequireNoError(err)
}

func (w *e2eCluster) inflate() {
	w.scale(replicas)
	w.WaitUntil(time.Minute, "five pods to run", func() bool { return w.running() == replicas })
	if !w.progress.unschedulable {
		w.Error("no pod was observed as Unschedulable")
	}
	w.settled()
	w.checkFleet()
	w.checkViewers()
}

// settled waits until every claim is initialized and its instance tagged.
func (w *e2eCluster) settled() {
	w.WaitUntil(time.Minute, "every NodeClaim to be initialized, and its instance to be tagged", func() bool {
		for _, claim := range w.Claims() {
			r, _ := w.Cloud.Record(testbed.InstanceID(claim.Status.ProviderID))
			if !claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || r.Tags[karpenter.NodeClaimTagKey] == "" {
				return false
			}
		}
		return true
	})
}

// interrupt sends an interruption for the first spot instance. As soon as a replacement
// claim exists, it kills every service.
func (w *e2eCluster) interrupt() {
	var victim string
	for _, r := range w.RunningInstances() {
		if r.CapacityType == cloud.Spot {
			victim = r.ID
			break
		}
	}
	if victim == "" || !w.Cloud.InterruptSpot(victim) {
		w.Fatalf("no spot instance was launched, although the pool prefers spot")
	}
	warned := time.Now()
	w.logPhase("EC2 Spot Instance Interruption Warning for %s", victim)
	claims := len(w.Claims())
	w.WaitUntil(time.Minute, "a NodeClaim that replaces it", func() bool { return len(w.Claims()) > claims })
	w.RestartJoist()
	// A message that was in flight when a service was killed is delivered again after its
	// visibility timeout, up to 70 s.
	w.WaitUntil(2*time.Minute, "the node to be replaced", func() bool {
		r, _ := w.Cloud.Record(victim)
		for _, claim := range w.Claims() {
			if testbed.InstanceID(claim.Status.ProviderID) == victim {
				return false
			}
		}
		for _, node := range w.Nodes() {
			if testbed.InstanceID(node.Spec.ProviderID) == victim {
				return false
			}
		}
		return !r.Gone.IsZero() && w.running() == replicas
	})
	w.Logf("replaced within %.1f of the 120 s between the warning and the interruption", time.Since(warned).Seconds())
	w.settled()
	w.checkFleet()
}

func (w *e2eCluster) deflate() {
	w.scale(0)
	// The pool's budget permits two of five nodes at a time. They are proposed, confirmed
	// after 15 s, and drained: half a minute per command.
	w.WaitUntil(replicas*time.Minute, "the nodes, NodeClaims and instances to be removed", func() bool {
		return len(w.Nodes())+len(w.Claims())+len(w.pods()) == 0 && w.AllTerminated()
	})
	var left []string
	w.WaitUntil(time.Minute, "the launch templates to be deleted", func() bool {
		templates, err := w.Cloud.Templates(w.Context(), nil)
		w.RequireNoError(err)
		left = nil
		for _, template := range templates {
			left = append(left, template.Name)
		}
		return len(left) == 0
	})
	w.Logf("no node, NodeClaim, instance or launch template remains; the total cost is $%.6f", w.Cloud.Dollars())
}

// end stops Joist, and checks what it leaves.
func (w *e2eCluster) end() {
	w.logPhase("SIGTERM")
	w.Stop()
	w.checkUsedPermissions()
}
