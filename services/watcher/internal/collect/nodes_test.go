package collect_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// Until a node is initialized, each resource that its kubelet does not report has the claim's
// value, so that pods stay planned for the node while the device plugin is late.
func TestLateDevicePlugin(t *testing.T) {
	const gpu = corev1.ResourceName("nvidia.com/gpu")
	amounts := func(cpu, gpus string) corev1.ResourceList {
		out := list("cpu", cpu)
		out[corev1.ResourcePods] = resource.MustParse("10")
		if gpus != "" {
			out[gpu] = resource.MustParse(gpus)
		}
		return out
	}
	promising := func(c *karpenter.NodeClaim) {
		launched(c)
		c.Status.Capacity, c.Status.Allocatable = amounts("8", "1"), amounts("7", "1")
	}
	for _, tt := range []struct {
		name     string
		claim    func(*karpenter.NodeClaim)
		reported string
		want     string
		nodes    int
	}{
		{"absent", promising, "", "1", 1},
		{"zero", promising, "0", "1", 1},
		{"reported", promising, "2", "2", 1},
		{"missing although initialized", func(c *karpenter.NodeClaim) { registered(c); promising(c) }, "", "0", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			waiting := pod("p", "")
			waiting.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1")
			view := collectAll(claim("c", tt.claim), node("n", func(n *corev1.Node) {
				n.Status.Allocatable, n.Status.Capacity = amounts("4", tt.reported), amounts("4", tt.reported)
			}), waiting)
			got := view.Snapshot.Nodes[0]
			for what, have := range map[string]corev1.ResourceList{"allocatable": got.Allocatable, "capacity": got.Capacity} {
				if q := have[gpu]; q.Cmp(resource.MustParse(tt.want)) != 0 || have.Cpu().Value() != 4 {
					t.Errorf("%s: got %s GPUs and %s cores", what, q.String(), have.Cpu())
				}
			}
			result := solver.SolveWithTypes(planning.Batch{Snapshot: view.Snapshot, Pending: view.Pending}, instancetypes.InstanceTypes{})
			if len(result.Nominations) != tt.nodes {
				t.Errorf("nominated %+v, unplaced %+v", result.Nominations, result.Unplaced)
			}
		})
	}
}

// autoModeClass is a node class of EKS Auto Mode, which may have the same name as an EC2NodeClass.
var autoModeClass = &karpenter.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}

func ofAutoMode(c *karpenter.NodeClaim) { c.Spec.NodeClassRef = autoModeClass }

// EKS Auto Mode has NodePools and NodeClaims of the same kinds in the same cluster. Its NodePools are left out, its launching nodes
// are no capacity, and its nodes are described like nodes without a claim.
func TestOtherProviders(t *testing.T) {
	own, foreign := static("default", 2), static("general-purpose", 3)
	own.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
	foreign.Spec.Template.Spec.NodeClassRef = autoModeClass
	view := gated(allGates, own, foreign, claim("coming", ofAutoMode), claim("joined", registered, ofAutoMode), node("n"), pod("p", "n"))
	if pools := view.Snapshot.NodePools; len(pools) != 1 || pools[0].Name != "default" {
		t.Errorf("got NodePools %+v", pools)
	}
	if keys := view.PendingKeys(); !slices.Equal(keys, []string{"static/default/0", "static/default/1"}) {
		t.Errorf("pending: %v", keys)
	}
	unmanaged := collectAll(node("n"), pod("p", "n")).Snapshot.Nodes
	if diff := cmp.Diff(unmanaged, view.Snapshot.Nodes); diff != "" {
		t.Errorf("a node of Auto Mode differs from a node without a claim (-without +Auto Mode):\n%s", diff)
	}
	if waiting := gated(allGates, claim("new", ofAutoMode), claim("own")).Unplanned; len(waiting) != 1 || waiting[0].Name != "own" {
		t.Errorf("got %d user-created NodeClaims to launch", len(waiting))
	}
	for name, test := range map[string]struct {
		objects []cluster.Object
		want    bool
	}{
		"a node that Auto Mode may still keep": {[]cluster.Object{node("n", disrupted), claim("c", registered, ofAutoMode)}, false},
		"a node without a claim":               {[]cluster.Object{node("n", disrupted)}, true},
		"a node that is being deleted": {[]cluster.Object{claim("c", registered, ofAutoMode, deleteClaim), node("n", disrupted, func(n *corev1.Node) {
			n.DeletionTimestamp, n.Finalizers = new(metav1.NewTime(noon)), []string{karpenter.TerminationFinalizer}
		})}, true},
	} {
		view := collectAll(append(test.objects, pod("p", "n"))...)
		if !view.Snapshot.Nodes[0].MarkedForDeletion || len(view.Pending) == 1 != test.want {
			t.Errorf("%s: %d pods are planned elsewhere, marked %t", name, len(view.Pending), view.Snapshot.Nodes[0].MarkedForDeletion)
		}
	}
}
