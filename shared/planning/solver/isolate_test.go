package solver

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// TestPanicIsIsolatedToClass makes planning panic for some classes, and checks that the others are
// planned.
func TestPanicIsIsolatedToClass(t *testing.T) {
	for _, tt := range []struct {
		name         string
		bad          int
		blamed       bool
		placed, lost int
	}{
		{"one class", 1, true, 39, 1},
		{"as many as are isolated", maxFailures, true, 40 - maxFailures, maxFailures},
		{"too many", maxFailures + 1, true, 0, 40},
		{"no single class is the cause", 1, false, 0, 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var pending []planning.PodClass
			for i := range 40 {
				ref := planning.PodRef{UID: strconv.Itoa(i)}
				pending = append(pending, planning.PodClass{Spec: planning.PodSpec{Namespace: "n", Priority: int32(i)}, Pods: []planning.PodRef{ref}})
			}
			describe := func(class *planning.PodClass) (*planning.PodSpec, []planning.PodRef) { return &class.Spec, class.Pods }
			result := isolateFailures(pending, describe, func(left []planning.PodClass) (planning.Result, *planningFailure) {
				out := planning.Result{}
				for i := range left {
					class := &left[i]
					if int(class.Spec.Priority) < tt.bad {
						fault := &planningFailure{cause: "index out of range"}
						if tt.blamed {
							fault.spec = &class.Spec
						}
						return planning.Result{}, fault
					}
					out.Nominations = append(out.Nominations, planning.Nomination{Pod: class.Pods[0]})
				}
				return out, nil
			})
			if len(result.Nominations) != tt.placed || countUnplaced(result) != tt.lost {
				t.Errorf("%d placed and %d unplaced, want %d and %d", len(result.Nominations), countUnplaced(result), tt.placed, tt.lost)
			}
			for _, u := range result.Unplaced {
				if !strings.Contains(u.Rejections[0].Detail, "index out of range") {
					t.Errorf("rejection %q, want the panic's text", u.Rejections[0].Detail)
				}
			}
		})
	}
}

// TestSmallerCapsAreKept merges the caps of two attempts.
func TestSmallerCapsAreKept(t *testing.T) {
	spec := &planning.PodSpec{}
	at := func(set string) placement { return placement{spec, set} }
	got := mergeCaps(map[placement]int{at("a"): 3, at("b"): 3, at("c"): 3}, map[placement]int{at("b"): 2, at("c"): 4, at("d"): 1})
	if want := map[placement]int{at("a"): 3, at("b"): 2, at("c"): 3, at("d"): 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestPanicNamesClassInWork checks which class a panic is reported for.
func TestPanicNamesClassInWork(t *testing.T) {
	class := &podClass{spec: &planning.PodSpec{Namespace: "n"}}
	for _, tt := range []struct {
		name  string
		state *state
		want  *planning.PodSpec
	}{
		{"before the snapshot is read", nil, nil},
		{"between classes", &state{}, nil},
		{"during a class", &state{currentClass: class}, class.spec},
	} {
		plan := func() (fault *planningFailure) {
			defer recoverFailure(&tt.state, &fault)
			panic("index out of range")
		}
		if fault := plan(); fault == nil || fault.spec != tt.want || fault.cause != "index out of range" {
			t.Errorf("%s: got %+v, want the spec %+v", tt.name, fault, tt.want)
		}
	}
}

// TestPanicIsIsolatedInRemovals removes a node with two pods, of which one makes planning panic. The other one gets a new node.
func TestPanicIsIsolatedInRemovals(t *testing.T) {
	snapshot := planningtest.NewBatch().Snapshot
	snapshot.Nodes = []planning.Node{{
		Name: "n", Claim: "n", NodePool: "default", Launched: true, Registered: true, Initialized: true, Ready: true,
		Pods: []planning.PodClass{planningtest.NewPods("bad", 1, "1", "64Mi"), planningtest.NewPods("good", 1, "500m", "64Mi")},
	}}
	simulation := NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	if result := simulation.SimulateRemoval(0); len(result.Unplaced) > 0 {
		t.Fatalf("unplaced: %+v", result.Unplaced)
	}
	simulation.baseline.movable[0][0].kind.preferences = preferences{}
	result := simulation.SimulateRemoval(0)
	if len(result.Nodes) != 1 || len(result.Nodes[0].Pods) != 1 || countUnplaced(result) != 1 || result.Unplaced[0].Pods[0].Name != "bad-0" {
		t.Errorf("%d nodes, unplaced %+v, want a node for the good pod", len(result.Nodes), result.Unplaced)
	}
}

// TestPanicOfPackingNamesNoClass assigns domains to a class, and then panics, as the packing of all classes could.
func TestPanicOfPackingNamesNoClass(t *testing.T) {
	w := &state{}
	plan := func() (fault *planningFailure) {
		defer recoverFailure(&w, &fault)
		(&rounds{state: w}).assignAll([]*podClass{{spec: &planning.PodSpec{}}})
		panic("index out of range")
	}
	if fault := plan(); fault == nil || fault.spec != nil {
		t.Errorf("got %+v, want a failure of no class", fault)
	}
}

// TestPanicNamesPlacedClass places a pod, or relaxes a class, in a state that is not complete, which panics.
func TestPanicNamesPlacedClass(t *testing.T) {
	for name, place := range map[string]func(*rounds, queuedPod){
		"a pod":              func(r *rounds, pod queuedPod) { r.placePod(pod) },
		"a class":            func(r *rounds, pod queuedPod) { r.canRetry(pod.class) },
		"a pod with a claim": func(r *rounds, pod queuedPod) { r.placeClaimPod(claimPod{queuedPod: pod, expected: -1}) },
	} {
		class, w := &podClass{spec: &planning.PodSpec{Namespace: "n"}, preferences: preferences{anyOf: make([]planning.Requirements, 2)}}, &state{}
		plan := func() (fault *planningFailure) {
			defer recoverFailure(&w, &fault)
			place(&rounds{state: w}, queuedPod{class: class})
			return nil
		}
		if fault := plan(); fault == nil || fault.spec != class.spec {
			t.Errorf("%s: got %+v, want a failure of the pod's class", name, fault)
		}
	}
}
