package scheduling

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestPanicIsOneClassesFault breaks a class in the one way that a test can: its
// rules hold a selector that is nil.
func TestPanicIsOneClassesFault(t *testing.T) {
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	a := newAxis(requests)
	class := func(cpu string) *demand {
		d, problem := newDemand(PodSpec{Namespace: "n", Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}, a, Settings{})
		if problem != "" {
			t.Fatal(problem)
		}
		return d
	}
	good, bad := class("1"), class("2")
	bad.rules.apart = []selection{{namespaces: []string{"n"}}}
	node := Node{Name: "a", Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9")}}
	p := &packer{axis: a, left: map[*demand][]PodRef{}, existing: newExisting(Snapshot{Nodes: []Node{node}}, a, nil)}
	if aside := p.guarded(run{good, []PodRef{{Name: "g0"}}}); aside != nil {
		t.Fatal(aside.reason())
	}
	aside := p.guarded(run{bad, []PodRef{{Name: "b0"}, {Name: "b1"}}})
	if aside == nil || len(aside.pods) != 2 || !strings.Contains(aside.reason(), "planning for it failed") {
		t.Fatalf("aside = %+v, want both pods and the reason", aside)
	}
	if aside := p.guarded(run{good, []PodRef{{Name: "g1"}}}); aside != nil || len(p.nominations) != 2 {
		t.Errorf("aside %v, %d nominations: the good class must not suffer", aside, len(p.nominations))
	}
}
