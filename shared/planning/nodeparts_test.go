package planning_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// namedNodes returns nodes with these names.
func namedNodes(names ...string) (out []planning.Node) {
	for _, name := range names {
		out = append(out, planning.Node{Name: name})
	}
	return out
}

func TestJoin(t *testing.T) {
	run := func(numbers ...int) (out []planning.NodeRun) {
		for i := 0; i < len(numbers); i += 3 {
			out = append(out, planning.NodeRun(numbers[i:i+3]))
		}
		return out
	}
	endless := make([]planning.NodeRun, 150_000)
	for i := range endless {
		endless[i] = planning.NodeRun{1, 0, 2}
	}
	for name, test := range map[string]struct {
		runs []planning.NodeRun
		want []planning.Node
	}{
		"nodes of the document between those of the parts": {run(1, 0, 1, 0, 0, 2, 1, 1, 1, 2, 0, 1), namedNodes("c", "a", "b", "d", "e")},
		"without a part":             {run(0, 1, 1), namedNodes("b")},
		"a part that is missing":     {run(3, 0, 1), nil},
		"a negative part":            {run(-1, 0, 1), nil},
		"a run beyond the part":      {run(1, 1, 2), nil},
		"a run after the part":       {run(1, 3, 1), nil},
		"a run before the part":      {run(1, -1, 1), nil},
		"a run without nodes":        {run(1, 0, 0), nil},
		"a run that overflows":       {run(1, 1, 1<<62), nil},
		"more nodes than EKS allows": {endless, nil},
	} {
		t.Run(name, func(t *testing.T) {
			batch := planning.Batch{Snapshot: planning.Snapshot{Nodes: namedNodes("a", "b"), NodeParts: planning.NodeParts{Runs: test.runs}}}
			err := batch.Join([]any{&planning.NodePart{Nodes: namedNodes("c", "d")}, &planning.NodePart{Nodes: namedNodes("e")}})
			if test.want == nil {
				if !fault.Is(err, fault.Poison) {
					t.Fatalf("error %v, want poison", err)
				}
				return
			}
			if diff := cmp.Diff(planning.Snapshot{Nodes: test.want}, batch.Snapshot); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// TestPartsHaveTheirKind requires that a document cannot make a service read another kind of document as nodes.
func TestPartsHaveTheirKind(t *testing.T) {
	s := planning.Snapshot{NodeParts: planning.NodeParts{Refs: []event.Ref{{Kind: planning.PlanKind, Digest: event.DigestOf(nil), Size: 1}}}}
	if _, err := s.PartRefs(); !fault.Is(err, fault.Poison) {
		t.Errorf("error %v, want poison", err)
	}
}

// TestSharedValues requires that equal pod specs and capacities of two parts share memory, and different ones do not.
func TestSharedValues(t *testing.T) {
	node := func(name, cpu string) planning.Node {
		capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return planning.Node{Name: name, Allocatable: capacity, Pods: []planning.PodClass{{Spec: planning.PodSpec{Namespace: "a", Requests: capacity}, Pods: []planning.PodRef{{Name: name}}}}}
	}
	var batch planning.Batch
	shared := batch.NewShared()
	decode := func(nodes ...planning.Node) *planning.NodePart {
		text, err := json.Marshal(planning.NodePart{Nodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		part := batch.NewPart(shared).(*planning.NodePart)
		if err := json.Unmarshal(text, part); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(nodes, part.Nodes); diff != "" {
			t.Fatal(diff)
		}
		return part
	}
	first, second := decode(node("x", "4"), node("y", "8")), decode(node("z", "4"))
	delete(first.Nodes[0].Pods[0].Spec.Requests, corev1.ResourceCPU)
	delete(first.Nodes[0].Allocatable, corev1.ResourceCPU)
	if z := second.Nodes[0]; len(z.Pods[0].Spec.Requests) > 0 || len(z.Allocatable) > 0 {
		t.Error("equal values do not share memory")
	}
	if y := first.Nodes[1]; len(y.Pods[0].Spec.Requests) == 0 || len(y.Allocatable) == 0 {
		t.Error("different values share memory")
	}
	if err := json.Unmarshal([]byte(`{"nodes":[{"pods":[{"spec":7}]}]}`), batch.NewPart(shared)); err == nil {
		t.Error("a part of the wrong type was decoded")
	}
}
