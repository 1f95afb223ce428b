package collect_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

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
