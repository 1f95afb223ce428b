package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/integration/bench/karpenterbaseline"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

const (
	reservedType = "t4g.medium"
	reservedZone = "ap-northeast-2a"
	reservedID   = "cr-1"
)

// reservedCase is a NodePool that allows these capacity types, a reservation, and pods that fill a node each.
type reservedCase struct {
	name          string
	capacityTypes []string
	free, pods    int
	// unavailable reservations are reclaimed by their owner.
	unavailable bool
	// fallback adds an on-demand NodePool of lower weight.
	fallback bool
	// batch and removal are Joist's plans if they are others than Karpenter's.
	batch, removal string
}

// TestReservedLikeUpstream compares the plans for reservations that are full, free or unavailable: of pending pods, of
// the pods of a removed node, and of these with the capacity that the node frees. The cases are those of Karpenter's
// pkg/controllers/provisioning/scheduling/reserved_fallback_test.go.
func TestReservedLikeUpstream(t *testing.T) {
	reserved, onDemand := karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand
	only, either := []string{reserved}, []string{reserved, onDemand}
	for _, c := range []reservedCase{
		{name: "full, reserved only", capacityTypes: only, pods: 1},
		{name: "free, reserved only", capacityTypes: only, free: 3, pods: 1},
		{name: "free but unavailable", capacityTypes: only, free: 5, pods: 1, unavailable: true},
		{name: "full and unavailable", capacityTypes: only, pods: 1, unavailable: true},
		{name: "full, with on-demand", capacityTypes: either, pods: 1},
		{name: "free, with on-demand", capacityTypes: either, free: 1, pods: 1},
		{name: "full, with another NodePool", capacityTypes: only, pods: 1, fallback: true, batch: "on-demand"},
		{name: "full, two pods", capacityTypes: only, pods: 2},
		{name: "one free instance, two pods, with on-demand", capacityTypes: either, free: 1, pods: 2, batch: "on-demand reserved", removal: "on-demand reserved"},
		// Karpenter's simulation of a removal adds NodeClaims for a reservation that the first one fills.
		{name: "one free instance, three pods", capacityTypes: only, free: 1, pods: 3, removal: "reserved 2 unplaced"},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch, removal, termination := c.planWithJoist()
			for _, mode := range []struct {
				name    string
				ours    string
				options karpenterbaseline.Options
				differs string
			}{
				{"batch", batch, karpenterbaseline.Options{}, c.batch},
				{"removal", removal, karpenterbaseline.Options{ReservedFallback: true}, c.removal},
				{"termination", termination, karpenterbaseline.Options{CreditReservation: reservedID}, ""},
			} {
				theirs := c.planUpstream(t, mode.options)
				switch {
				case mode.differs == "" && mode.ours != theirs:
					t.Errorf("%s: Joist plans %q, and Karpenter %q", mode.name, mode.ours, theirs)
				case mode.differs != "" && (mode.ours != mode.differs || theirs == mode.ours):
					t.Errorf("%s: Joist plans %q, want %q unlike Karpenter, which plans %q", mode.name, mode.ours, mode.differs, theirs)
				}
			}
		})
	}
}

// describeNodes returns the capacity types of the new nodes and the number of pods without a node.
func describeNodes(capacityTypes []string, unplaced int) string {
	slices.Sort(capacityTypes)
	if unplaced > 0 {
		capacityTypes = append(capacityTypes, fmt.Sprint(unplaced, " unplaced"))
	}
	return strings.Join(capacityTypes, " ")
}

func describeOurs(r planning.Result) string {
	var capacityTypes []string
	unplaced := 0
	for _, n := range r.Nodes {
		capacityTypes = append(capacityTypes, n.Offerings[0].CapacityType)
	}
	for _, u := range r.Unplaced {
		unplaced += len(u.Pods)
	}
	return describeNodes(capacityTypes, unplaced)
}

// snapshot returns the case as Joist's input.
func (c reservedCase) snapshot() (planning.Snapshot, catalog.Catalogue) {
	s, cat := planningtest.NewBatch().Snapshot, planningtest.NewCatalogue()
	s.Settings.Gates.ReservedCapacity = true
	s.Settings.MaxNodeShare = 1
	s.NodePools[0] = c.pool("default", 10, c.capacityTypes...)
	if c.fallback {
		s.NodePools = append(s.NodePools, c.pool("fallback", 1, karpenter.CapacityTypeOnDemand))
	}
	cat.AsOf, cat.Reservations = s.TakenAt, []catalog.ReservationCount{{ID: reservedID, Count: int64(c.free)}}
	s.NodeClasses[0].Status.CapacityReservations = []karpenter.CapacityReservation{{ID: reservedID, InstanceType: reservedType, AvailabilityZone: reservedZone}}
	if c.unavailable {
		s.Unavailable = []planning.Unavailable{{
			Offering:    event.Offering{InstanceType: reservedType, Zone: reservedZone, CapacityType: karpenter.CapacityTypeReserved},
			Reservation: reservedID, Until: s.TakenAt.Add(time.Minute), Reason: "InvalidCapacityReservationState.Unavailable",
		}}
	}
	return s, cat
}

// pool returns a NodePool of the reserved type.
func (c reservedCase) pool(name string, weight int32, capacityTypes ...string) karpenter.NodePool {
	out := planningtest.NewNodePool()
	out.Name, out.Spec.Weight, out.Spec.Limits = name, &weight, nil
	out.Spec.Template.Spec.Taints, out.Spec.Template.Spec.StartupTaints = nil, nil
	out.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{reservedType}},
		{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: capacityTypes},
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.ArchitectureARM64}},
	}
	return out
}

func (c reservedCase) planWithJoist() (batch, removal, termination string) {
	s, cat := c.snapshot()
	pods := planningtest.NewPods("web", c.pods, "1500m", "1Gi")
	batch = describeOurs(solver.Solve(planning.Batch{Snapshot: s, Pending: []planning.PodClass{pods}}, cat))
	s.Nodes = []planning.Node{{
		Name: "old", Claim: "old", NodePool: "default", Instance: "i-1", Launched: true, Registered: true, Initialized: true, Ready: true,
		Labels: map[string]string{corev1.LabelHostname: "old", corev1.LabelTopologyZone: reservedZone}, Pods: []planning.PodClass{pods},
		Created: s.TakenAt.Add(-time.Hour), InitializedAt: s.TakenAt.Add(-time.Hour),
	}}
	simulation := solver.NewSimulation(s, instancetypes.New(s, cat))
	return batch, describeOurs(simulation.SimulateRemoval(0)), describeOurs(simulation.SimulateTermination(reservedID, 0))
}

// planUpstream plans the case with Karpenter's scheduler, with the same type, prices and NodePools.
func (c reservedCase) planUpstream(t *testing.T, options karpenterbaseline.Options) string {
	t.Helper()
	s, cat := c.snapshot()
	types := instancetypes.New(s, cat).TypesForPool("default", s.NodeClasses[0].Name)
	kind := types[slices.IndexFunc(types, func(it instancetypes.Type) bool { return it.Name == reservedType })]
	var offerings []any
	for _, o := range kind.Offerings {
		offerings = append(offerings, map[string]any{
			"zone": o.Zone, "capacityType": o.CapacityType, "price": o.PricePerHour, "available": o.Available,
			"reservation": o.Reservation, "reservationCapacity": o.ReservationCapacity,
		})
	}
	pod := corev1.Pod{}
	pod.Name = "web"
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: planningtest.NewRequests("1500m", "1Gi")}}}
	delete(pod.Spec.Containers[0].Resources.Requests, corev1.ResourcePods)
	text, err := json.Marshal(map[string]any{
		"name": "reserved", "nodePools": s.NodePools, "podGroups": []any{map[string]any{"count": c.pods, "template": pod}},
		"instanceTypes": []any{map[string]any{
			"name": kind.Name, "arch": karpenter.ArchitectureARM64, "os": []string{"linux"}, "capacity": kind.Allocatable, "offerings": offerings,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	problem, err := karpenterbaseline.Parse(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	options.Concurrency = 1
	plan, err := karpenterbaseline.Plan(context.Background(), problem, options)
	if err != nil {
		t.Fatal(err)
	}
	var capacityTypes []string
	for _, n := range plan.NewNodes {
		capacityTypes = append(capacityTypes, n.CapacityType)
	}
	return describeNodes(capacityTypes, len(plan.Unscheduled))
}
