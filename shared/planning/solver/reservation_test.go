package solver_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

const (
	fullInBatch   = "all compatible reserved offerings are full and no on-demand or spot fallback is available"
	fullInRemoval = "the only compatible reserved offering is full; falling through to other NodePools"
	notReserved   = "one or more instance types with compatible reserved offerings are available, but could not be reserved"
)

// reservedCluster is a pool of t4g instances, and a reservation of t4g.medium with free capacity.
func reservedCluster(free int64, capacityTypes ...string) (planning.Snapshot, catalog.Catalogue) {
	s, cat := planningtest.NewBatch().Snapshot, planningtest.NewCatalogue()
	s.Settings.Gates.ReservedCapacity = true
	allowCapacityTypes(&s.NodePools[0], capacityTypes...)
	cat.AsOf = s.TakenAt
	cat.Reservations = []catalog.ReservationCount{{ID: "cr-1", Count: free}}
	s.NodeClasses[0].Status.CapacityReservations = []karpenter.CapacityReservation{{ID: "cr-1", InstanceType: "t4g.medium", AvailabilityZone: "ap-northeast-2a"}}
	return s, cat
}

func allowCapacityTypes(pool *karpenter.NodePool, capacityTypes ...string) {
	requirements := slices.Clone(pool.Spec.Template.Spec.Requirements)
	for i := range requirements {
		if requirements[i].Key == karpenter.CapacityTypeLabelKey {
			requirements[i].Values = capacityTypes
		}
	}
	pool.Spec.Template.Spec.Requirements = requirements
}

// withOnDemandPool adds a pool of lower weight without reservations.
func withOnDemandPool(s *planning.Snapshot) {
	pool := planningtest.NewNodePool()
	pool.Name = "fallback"
	allowCapacityTypes(&pool, karpenter.CapacityTypeOnDemand)
	s.NodePools[0].Spec.Weight = new(int32(10))
	s.NodePools = append(s.NodePools, pool)
}

// reclaim makes the reservation unavailable.
func reclaim(s *planning.Snapshot) {
	s.Unavailable = []planning.Unavailable{{
		Offering:    event.Offering{InstanceType: "t4g.medium", Zone: "ap-northeast-2a", CapacityType: karpenter.CapacityTypeReserved},
		Reservation: "cr-1", Until: s.TakenAt.Add(time.Minute), Reason: "InvalidCapacityReservationState.Unavailable",
	}}
}

// describePlan returns the pool and capacity type of each planned node, and why pods are unplaced. The NodeClaim of a
// reserved node must allow nothing else.
func describePlan(r planning.Result) string {
	var out []string
	for _, n := range r.Nodes {
		capacityType := n.Offerings[0].CapacityType
		if only, _ := n.Requirements[karpenter.CapacityTypeLabelKey].SingleValue(); only != capacityType && capacityType == karpenter.CapacityTypeReserved {
			capacityType = n.Requirements[karpenter.CapacityTypeLabelKey].String()
		}
		out = append(out, n.NodePool+"/"+capacityType)
	}
	slices.Sort(out)
	for _, u := range r.Unplaced {
		out = append(out, fmt.Sprintf("%d: %s", len(u.Pods), u.Rejections[0].Detail))
	}
	return strings.Join(out, "; ")
}

// TestFullReservations follows Karpenter's pkg/controllers/provisioning/scheduling/reserved_fallback_test.go:
// batches are its strict mode, removals its fallback mode, and terminations its credited capacity. One
// pod needs a whole node.
func TestFullReservations(t *testing.T) {
	reserved, onDemand := karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand
	for _, tt := range []struct {
		name                        string
		free                        int64
		capacityTypes               []string
		edit                        func(*planning.Snapshot)
		pods                        int
		batch, removal, termination string
	}{
		{"reserved only, with free capacity", 1, []string{reserved}, nil, 1, "default/reserved", "default/reserved", "default/reserved"},
		{"reserved only, full", 0, []string{reserved}, nil, 1, "1: " + fullInBatch, "1: " + fullInRemoval, "default/reserved"},
		{"reserved only, full, two pods", 0, []string{reserved}, nil, 2, "2: " + fullInBatch, "2: " + fullInRemoval, "default/reserved; 1: " + notReserved},
		{"reserved only, full and unavailable", 0, []string{reserved}, reclaim, 1, unavailableText, unavailableText, unavailableText},
		{"reserved only, free but unavailable", 1, []string{reserved}, reclaim, 1, unavailableText, unavailableText, unavailableText},
		{"reserved or on-demand, with free capacity", 1, []string{reserved, onDemand}, nil, 1, "default/reserved", "default/reserved", "default/reserved"},
		{"reserved or on-demand, full", 0, []string{reserved, onDemand}, nil, 1, "default/on-demand", "default/on-demand", "default/reserved"},
		{"reserved or on-demand, more pods than free capacity", 1, []string{reserved, onDemand}, nil, 2,
			"default/on-demand; default/reserved", "default/on-demand; default/reserved", "default/reserved; default/reserved"},
		{"reserved only, full, with another pool", 0, []string{reserved}, withOnDemandPool, 1, "fallback/on-demand", "fallback/on-demand", "default/reserved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, cat := reservedCluster(tt.free, tt.capacityTypes...)
			if tt.edit != nil {
				tt.edit(&s)
			}
			pods := planningtest.NewPods("web", tt.pods, "1500m", "1Gi")
			if got := describePlan(solver.Solve(planning.Batch{Snapshot: s, Pending: []planning.PodClass{pods}}, cat)); got != tt.batch {
				t.Errorf("a batch gives %q, want %q", got, tt.batch)
			}
			s.Nodes = []planning.Node{node("old", running(pods))}
			simulation := solver.NewSimulation(s, instancetypes.New(s, cat))
			if got := describePlan(simulation.SimulateRemoval(0)); got != tt.removal {
				t.Errorf("a removal gives %q, want %q", got, tt.removal)
			}
			if got := describePlan(simulation.SimulateTermination("cr-1", 0)); got != tt.termination {
				t.Errorf("a termination gives %q, want %q", got, tt.termination)
			}
			if got := describePlan(simulation.SimulateRemoval(0)); got != tt.removal {
				t.Errorf("a removal after the termination gives %q, want %q", got, tt.removal)
			}
		})
	}
}

const unavailableText = "1: all 1 instance types of the pool are currently unavailable"

// TestTerminationOfUnknownReservation credits a reservation that no class selects.
func TestTerminationOfUnknownReservation(t *testing.T) {
	s, cat := reservedCluster(0, karpenter.CapacityTypeReserved)
	s.Nodes = []planning.Node{node("old", running(planningtest.NewPods("web", 1, "1500m", "1Gi")))}
	simulation := solver.NewSimulation(s, instancetypes.New(s, cat))
	if got := describePlan(simulation.SimulateTermination("cr-9", 0)); got != "1: "+fullInRemoval {
		t.Errorf("the plan is %q", got)
	}
}

// TestTerminationsShareCredit commits the termination of one node, so that the capacity that it frees is
// used when the next node is tried.
func TestTerminationsShareCredit(t *testing.T) {
	s, cat := reservedCluster(0, karpenter.CapacityTypeReserved)
	for _, name := range []string{"a", "b"} {
		s.Nodes = append(s.Nodes, node(name, running(planningtest.NewPods(name, 1, "1500m", "1Gi"))))
	}
	for _, prepared := range []bool{false, true} {
		simulation := solver.NewSimulation(s, instancetypes.New(s, cat))
		if prepared { // The credited simulation exists before the commit.
			simulation.SimulateTermination("cr-1", 1)
		}
		simulation.Commit(simulation.SimulateTermination("cr-1", 0), 0)
		if got := describePlan(simulation.SimulateTermination("cr-1", 1)); got != "1: "+notReserved {
			t.Errorf("prepared %t: the second termination gives %q", prepared, got)
		}
	}
}

// TestTerminationsKnowRemovals commits a removal that fills the only free node, so that the termination of another node cannot use
// it. Its reservation is not used by nodes of the cluster.
func TestTerminationsKnowRemovals(t *testing.T) {
	s, cat := reservedCluster(0, karpenter.CapacityTypeReserved)
	for _, name := range []string{"a", "b"} {
		s.Nodes = append(s.Nodes, node(name, running(planningtest.NewPods(name, 1, "1500m", "1Gi"))))
	}
	s.Nodes = append(s.Nodes, node("free"))
	for _, prepared := range []bool{false, true} {
		simulation := solver.NewSimulation(s, instancetypes.New(s, cat))
		if prepared { // The simulation with more capacity exists before the commit.
			simulation.SimulateTermination("cr-9", 1)
		}
		simulation.Commit(simulation.SimulateRemoval(0), 0)
		if got := simulation.SimulateTermination("cr-9", 1); len(got.Nominations) != 0 || len(got.Unplaced) != 1 {
			t.Errorf("prepared %t: %+v, want the pod unplaced", prepared, got)
		}
	}
}

// TestStaticNodesUseReservations fills a static pool from a reservation with two free instances. One of
// these goes to a pending pod.
func TestStaticNodesUseReservations(t *testing.T) {
	diverse := func(policy string) func(*planning.Snapshot) {
		return func(s *planning.Snapshot) {
			s.Settings.MinValuesPolicy = policy
			for i := range s.NodePools {
				if np := &s.NodePools[i]; np.Name == "static" {
					np.Spec.Template.Spec.Requirements = append(np.Spec.Template.Spec.Requirements,
						karpenter.NodeSelectorRequirementWithMinValues{Key: corev1.LabelInstanceTypeStable, Operator: karpenter.NodeSelectorOpExists, MinValues: new(2)})
				}
			}
		}
	}
	reserved, onDemand := karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand
	for _, tt := range []struct {
		name          string
		capacityTypes []string
		edit          func(*planning.Snapshot)
		want          string
	}{
		{"reserved or on-demand", []string{reserved, onDemand}, nil, "default/reserved; static/on-demand; static/on-demand; static/reserved"},
		{"reserved only", []string{reserved}, nil, "default/reserved; static/reserved"},
		{"on-demand only", []string{onDemand}, nil, "default/reserved; static/on-demand; static/on-demand; static/on-demand"},
		{"an unavailable reservation", []string{reserved}, reclaim, "1: all 1 instance types of the pool are currently unavailable"},
		{"minValues", []string{reserved, onDemand}, diverse("Strict"), "default/reserved; static/on-demand; static/on-demand; static/on-demand"},
		{"minValues with BestEffort", []string{reserved, onDemand}, diverse("BestEffort"), "default/reserved; static/on-demand; static/on-demand; static/reserved"},
		{"a price limit for one on-demand instance", []string{reserved, onDemand}, func(s *planning.Snapshot) {
			s.Settings.PriceLimit = new(0.05)
		}, "default/reserved; static/on-demand; static/reserved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, cat := reservedCluster(2, reserved)
			pool := planningtest.NewNodePool()
			pool.Name, pool.Spec.Replicas, pool.Spec.Limits = "static", new(int64(3)), nil
			allowCapacityTypes(&pool, tt.capacityTypes...)
			s.NodePools, s.Settings.Gates.StaticCapacity = append(s.NodePools, pool), true
			if tt.edit != nil {
				tt.edit(&s)
			}
			r := solver.Solve(planning.Batch{Snapshot: s, Pending: []planning.PodClass{planningtest.NewPods("web", 1, "1500m", "1Gi")}}, cat)
			if got := describePlan(r); got != tt.want {
				t.Errorf("the plan is %q, want %q", got, tt.want)
			}
			sum := 0.0
			for _, n := range r.Nodes {
				sum += n.PricePerHour
			}
			if math.Abs(sum-r.PricePerHour) > 1e-9 {
				t.Errorf("the plan costs $%v an hour, and its nodes $%v", r.PricePerHour, sum)
			}
			for _, n := range r.Nodes {
				id, pinned := n.Requirements[karpenter.LabelCapacityReservationID].SingleValue()
				if want := n.Offerings[0].CapacityType == reserved; pinned != want || want && (id != "cr-1" || len(n.Offerings) != 1) {
					t.Errorf("%s: the reservation is %q, and it has %d offerings", n.NodePool, id, len(n.Offerings))
				}
			}
		})
	}
}

// TestStaticNodesUseReservationsOnce removes a node of a static pool that lacks another node. The lacking node gets the only free instance
// of the reservation, so that the replacement does not.
func TestStaticNodesUseReservationsOnce(t *testing.T) {
	s, cat := reservedCluster(1, karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand)
	s.NodePools[0].Spec.Replicas, s.NodePools[0].Spec.Limits, s.Settings.Gates.StaticCapacity = new(int64(2)), nil, true
	s.Nodes = []planning.Node{node("old")}
	if got := describePlan(solver.NewSimulation(s, instancetypes.New(s, cat)).SimulateRemoval(0)); got != "default/on-demand" {
		t.Errorf("the plan is %q, want an on-demand node", got)
	}
}

// TestStaticNodesUseTheCheapestReservation has two reservations of different instance types for a static pool.
func TestStaticNodesUseTheCheapestReservation(t *testing.T) {
	for _, first := range []string{"t4g.medium", "t4g.large"} {
		s, cat := reservedCluster(1, karpenter.CapacityTypeReserved)
		reservations := s.NodeClasses[0].Status.CapacityReservations
		reservations = append(reservations, reservations[0])
		reservations[0].InstanceType, reservations[1].InstanceType = first, "t4g.large"
		if first == "t4g.large" {
			reservations[1].InstanceType = "t4g.medium"
		}
		reservations[1].ID = "cr-2"
		s.NodeClasses[0].Status.CapacityReservations = reservations
		cat.Reservations = append(cat.Reservations, catalog.ReservationCount{ID: "cr-2", Count: 1})
		s.NodePools[0].Spec.Replicas, s.NodePools[0].Spec.Limits, s.Settings.Gates.StaticCapacity = new(int64(1)), nil, true
		r := solver.Solve(planning.Batch{Snapshot: s}, cat)
		if len(r.Nodes) != 1 || r.Nodes[0].Offerings[0].InstanceType != "t4g.medium" {
			t.Errorf("the first reservation is of %s: got %+v, want the reserved t4g.medium", first, r.Nodes)
		}
	}
}

// TestFindFullReservations asks for the reservations of a static pool. It is full only if the pool may use nothing else;
// whether the pool itself is ready does not matter.
func TestFindFullReservations(t *testing.T) {
	reserved, onDemand := karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand
	notReady := func(s *planning.Snapshot) { s.NodePools[0].Status.Conditions = nil }
	going := func(s *planning.Snapshot) { s.NodePools[0].DeletionTimestamp = new(metav1.NewTime(planningtest.Now)) }
	for _, tt := range []struct {
		name          string
		free          int64
		capacityTypes []string
		edit          func(*planning.Snapshot)
		offered, full bool
	}{
		{"reserved only, full", 0, []string{reserved}, nil, true, true},
		{"reserved only, full, and the pool is not ready", 0, []string{reserved}, notReady, true, true},
		{"reserved only, full, and the pool is being deleted", 0, []string{reserved}, going, true, true},
		{"reserved only, with free capacity", 1, []string{reserved}, nil, false, false},
		{"reserved or on-demand, full", 0, []string{reserved, onDemand}, nil, true, false},
		{"on-demand only", 0, []string{onDemand}, nil, false, false},
		{"reserved only, full and unavailable", 0, []string{reserved}, reclaim, false, true},
		{"without its class", 0, []string{reserved}, func(s *planning.Snapshot) { s.NodeClasses = nil }, false, false},
	} {
		s, cat := reservedCluster(tt.free, tt.capacityTypes...)
		if tt.edit != nil {
			tt.edit(&s)
		}
		offered, full := solver.NewSimulation(s, instancetypes.New(s, cat)).FindFullReservations(s.NodePools[0].Name)
		if offered["cr-1"] != tt.offered || full != tt.full {
			t.Errorf("%s: got %v, full %t; want cr-1 %t, full %t", tt.name, offered, full, tt.offered, tt.full)
		}
	}
}

// TestReservedPricesOfOverlays plans a node on a reservation whose price a NodeOverlay sets.
func TestReservedPricesOfOverlays(t *testing.T) {
	s, cat := reservedCluster(1, karpenter.CapacityTypeReserved)
	s.Settings.Gates.NodeOverlay = true
	overlay := karpenter.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "paid"}}
	overlay.Spec.Requirements = []karpenter.OverlayRequirement{{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeReserved}}}
	overlay.Spec.Price = new("0.001")
	s.NodeOverlays = []karpenter.NodeOverlay{overlay}
	r := solver.Solve(planning.Batch{Snapshot: s, Pending: []planning.PodClass{planningtest.NewPods("web", 1, "500m", "1Gi")}}, cat)
	if len(r.Nodes) != 1 || !r.Nodes[0].Offerings[0].PricedByOverlay || r.Nodes[0].PricePerHour != 0.001 {
		t.Errorf("got %+v, want a node for the price of the overlay", r.Nodes)
	}
}

// TestReservationsLackLabelsOfOtherTypes plans pods for a pool that may use a reservation of t4g.medium, and g4dn on demand.
func TestReservationsLackLabelsOfOtherTypes(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*planning.PodSpec)
		want string
	}{
		{"a GPU", selecting(karpenter.LabelInstanceGPUName, "t4"), "default/on-demand"},
		{"no GPU", func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: karpenter.LabelInstanceGPUName, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"t4"}}}},
			}}}}
		}, "default/reserved"},
	} {
		s, cat := reservedCluster(1, karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand)
		s.NodeClasses[0].Status.AMIs[1].Requirements = s.NodeClasses[0].Status.AMIs[1].Requirements[:1]
		s.NodePools[0].Spec.Limits = nil
		s.NodePools[0].Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
			{Key: karpenter.LabelInstanceFamily, Operator: karpenter.NodeSelectorOpIn, Values: []string{"t4g", "g4dn"}},
			{Key: karpenter.CapacityTypeLabelKey, Operator: karpenter.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand}},
		}
		r := solver.Solve(planning.Batch{Snapshot: s, Pending: []planning.PodClass{planningtest.NewPods("web", 1, "500m", "1Gi", tt.edit)}}, cat)
		if got := describePlan(r); got != tt.want {
			t.Errorf("%s: the plan is %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestReservationsHaveLabels plans pods that select labels in a pool that may only use a reservation of t4g.medium.
func TestReservationsHaveLabels(t *testing.T) {
	for _, tt := range []struct {
		name, key, value string
		placed           bool
	}{
		{"its family", karpenter.LabelInstanceFamily, "t4g", true},
		{"another family", karpenter.LabelInstanceFamily, "m5", false},
		{"the reservation", karpenter.LabelCapacityReservationID, "cr-1", true},
		{"another reservation", karpenter.LabelCapacityReservationID, "cr-9", false},
		{"a label of the pool", "team", "shop", true},
		{"another value of a label of the pool", "team", "web", false},
		{"a label of other types", karpenter.LabelInstanceGPUName, "t4", false},
	} {
		s, cat := reservedCluster(1, karpenter.CapacityTypeReserved)
		s.NodePools[0].Spec.Template.Labels = map[string]string{"team": "shop"}
		r := solver.Solve(planning.Batch{Snapshot: s, Pending: []planning.PodClass{planningtest.NewPods("web", 1, "500m", "1Gi", selecting(tt.key, tt.value))}}, cat)
		if (len(r.Nodes) == 1) != tt.placed {
			t.Fatalf("%s: %d nodes, unplaced %+v", tt.name, len(r.Nodes), r.Unplaced)
		}
		for _, n := range r.Nodes {
			if kind, pinned := n.Requirements[karpenter.CapacityTypeLabelKey].SingleValue(); !pinned || kind != karpenter.CapacityTypeReserved {
				t.Errorf("%s: the node may have the capacity types %v", tt.name, n.Requirements[karpenter.CapacityTypeLabelKey])
			}
		}
	}
}
