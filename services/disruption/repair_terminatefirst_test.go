package disruption

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// TestRepairTerminatesFirst follows Karpenter's pkg/controllers/disruption/repair_terminatefirst_test.go.
// Each node is an unhealthy t4g.medium in the reservation cr-1, and each pod fills one.
func TestRepairTerminatesFirst(t *testing.T) {
	const reserved, onDemand = karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand
	only, either := allowing(reserved), allowing(reserved, onDemand)
	held := func(name string, edits ...func(*node)) node {
		return fixture.Node(name, "t4g.medium", append([]func(*node){unready, inReservation("cr-1")}, edits...)...)
	}
	ended := func(n *node) { n.Labels[karpenter.CapacityTypeLabelKey] = onDemand }
	gates := func(ofRepair, ofDrift bool) func(*planning.Snapshot) {
		return func(s *planning.Snapshot) {
			s.Repair.TerminateFirst, s.Settings.Gates.TerminateFirstDrift = ofRepair, ofDrift
		}
	}
	unavailable := func(o event.Offering, reservation string) func(*planning.Snapshot) {
		return func(s *planning.Snapshot) {
			s.Unavailable = append(s.Unavailable, planning.Unavailable{Offering: o, Reservation: reservation, Until: s.TakenAt.Add(time.Minute)})
		}
	}
	noOnDemand := unavailable(event.Offering{CapacityType: onDemand}, "")
	noReservation := unavailable(event.Offering{InstanceType: "t4g.medium", Zone: fixture.Zone, CapacityType: reserved}, "cr-1")
	unbounded := func(s *planning.Snapshot) {
		for i := range s.Repair.Policies {
			s.Repair.Policies[i].GracePeriod = nil
		}
	}
	healthy := func(n *node) { n.Unhealthy, n.Ready = nil, true }
	inDeletion := func(n *node) { n.MarkedForDeletion = true }
	deleted := func(p *karpenter.NodePool) { p.DeletionTimestamp = &metav1.Time{Time: fixture.Taken} }
	for _, tt := range []struct {
		name  string
		free  int64
		pool  karpenter.NodePool
		nodes []node
		edit  func(*planning.Snapshot)
		want  []string
		kept  []string
	}{
		{"full, without another offering", 0, fixture.Pool(never, only), []node{held("a", filling)}, nil,
			[]string{"Repair -a no-reserved-capacity"}, nil},
		{"full, with the gate off", 0, fixture.Pool(never, only), []node{held("a", filling)}, gates(false, false),
			nil, []string{"a repair-unplaceable"}},
		{"full, with the gate of drift alone", 0, fixture.Pool(never, only), []node{held("a", filling)}, gates(false, true),
			nil, []string{"a repair-unplaceable"}},
		{"full, drifted too, with the gate of drift alone", 0, fixture.Pool(never, only), []node{held("a", filling, drift(time.Hour))}, gates(false, true),
			[]string{"Drift -a no-reserved-capacity"}, nil},
		{"full, drifted and healthy, with the gate of repair alone", 0, fixture.Pool(never, only), []node{held("a", filling, drift(time.Hour), healthy)}, nil,
			nil, []string{"a pods-unplaceable"}},
		{"full, with a pod that blocks its eviction", 0, fixture.Pool(never, only), []node{held("a", filling, protected)}, nil,
			[]string{"Repair -a no-reserved-capacity"}, nil},
		{"full, with a pod that blocks its eviction, without a limit of the drain", 0, fixture.Pool(never, only), []node{held("a", filling, protected)}, unbounded,
			nil, []string{"a repair-unbounded"}},
		{"full, and more pods than one instance holds", 0, fixture.Pool(never, only), []node{held("a", filling, with(3))}, nil,
			nil, []string{"a repair-unplaceable"}},
		{"full and unavailable", 0, fixture.Pool(never, only), []node{held("a", filling)}, noReservation,
			nil, []string{"a repair-unplaceable"}},
		{"full, with on-demand", 0, fixture.Pool(never, either), []node{held("a", filling)}, nil,
			[]string{"Repair -a +t4g.medium"}, nil},
		{"with free capacity", 1, fixture.Pool(never, only), []node{held("a", filling)}, nil,
			[]string{"Repair -a +t4g.medium"}, nil},
		{"full, and without pods", 0, fixture.Pool(never, only), []node{held("a")}, nil,
			[]string{"Repair -a"}, nil},
		{"an on-demand node with the label of an ended reservation", 0, fixture.Pool(never, only), []node{held("a", filling, ended)}, nil,
			nil, []string{"a repair-unplaceable"}},
		{"a dynamic NodePool with other offerings", 0, fixture.Pool(never), []node{fixture.Node("a", "t4g.medium", unready, filling)}, nil,
			[]string{"Repair -a +t4g.medium"}, nil},
		{"one node in each evaluation", 0, fixture.Pool(never, only, fixture.Budgets("100%")), []node{held("a", filling), held("b", filling)}, nil,
			[]string{"Repair -a no-reserved-capacity"}, []string{"b lower-priority"}},
		{"without a budget", 0, fixture.Pool(never, only, fixture.Budgets("0")), []node{held("a", filling)}, nil,
			nil, []string{"a budget"}},

		{"static, at its limit", 0, fixture.Pool(static(1), limited("1")), []node{fixture.Node("a", "t4g.medium", unready)}, nil,
			[]string{"Repair -a static-at-limit"}, nil},
		{"static, at its limit, one node in each evaluation", 0, fixture.Pool(static(2), limited("2"), fixture.Budgets("100%")),
			[]node{fixture.Node("a", "t4g.medium", unready), fixture.Node("b", "t4g.medium", unready)}, nil,
			[]string{"Repair -a static-at-limit"}, []string{"b lower-priority"}},
		{"static, at its limit, with the gate off", 0, fixture.Pool(static(1), limited("1")), []node{fixture.Node("a", "t4g.medium", unready)}, gates(false, false),
			nil, []string{"a static-at-limit"}},
		{"static, at its limit, with the gate of drift alone", 0, fixture.Pool(static(1), limited("1")), []node{fixture.Node("a", "t4g.medium", unready)}, gates(false, true),
			nil, []string{"a static-at-limit"}},
		{"static, at its limit, not ready", 0, fixture.Pool(static(1), limited("1"), notReady), []node{fixture.Node("a", "t4g.medium", unready)}, nil,
			nil, []string{"a static-at-limit"}},
		{"static, at its limit, being deleted", 0, fixture.Pool(static(1), limited("1"), deleted), []node{fixture.Node("a", "t4g.medium", unready)}, nil,
			nil, []string{"a nodepool-deleting"}},
		{"static, below its limit", 0, fixture.Pool(static(1), limited("2")), []node{fixture.Node("a", "t4g.medium", unready)}, nil,
			[]string{"Repair -a +t4g.medium"}, nil},
		{"static, below its limit, with the gate off", 0, fixture.Pool(static(1), limited("2")), []node{fixture.Node("a", "t4g.medium", unready)}, gates(false, false),
			[]string{"Repair -a +t4g.medium"}, nil},
		{"static, without limit", 0, fixture.Pool(static(1)), []node{fixture.Node("a", "t4g.medium", unready)}, nil,
			[]string{"Repair -a +t4g.medium"}, nil},
		{"static, without limit, with the gate off", 0, fixture.Pool(static(1)), []node{fixture.Node("a", "t4g.medium", unready)}, gates(false, false),
			[]string{"Repair -a +t4g.medium"}, nil},
		{"static, at its limit because of a node that is being launched", 0, fixture.Pool(static(2), limited("2"), fixture.Budgets("1")),
			[]node{fixture.Node("a", "t4g.medium", unready), fixture.Node("new", "t4g.medium", uninitialized)}, nil,
			nil, []string{"a budget", "new not-initialized"}},
		{"static, at its limit because of a node that is being deleted", 0, fixture.Pool(static(1), limited("2")),
			[]node{fixture.Node("a", "t4g.medium", unready), fixture.Node("b", "t4g.medium", inDeletion)}, nil,
			[]string{"Repair -a static-at-limit"}, []string{"b deleting"}},
		{"static, with more nodes than replicas", 0, fixture.Pool(static(1), limited("5")), []node{fixture.Node("a", "t4g.medium", unready), fixture.Node("b", "t4g.medium")}, nil,
			nil, []string{"a no-replacement", "b static-nodepool"}},

		{"static, full, below its limit", 0, fixture.Pool(static(1), only, limited("2")), []node{held("a")}, nil,
			[]string{"Repair -a no-reserved-capacity"}, nil},
		{"static, full, at its limit", 0, fixture.Pool(static(1), only, limited("1")), []node{held("a")}, nil,
			[]string{"Repair -a no-reserved-capacity"}, nil},
		{"static, full, with more nodes than replicas", 0, fixture.Pool(static(1), only), []node{held("a"), held("b", healthy)}, nil,
			nil, []string{"a no-replacement", "b static-nodepool"}},
		{"static, full, not ready", 0, fixture.Pool(static(1), only, limited("2"), notReady), []node{held("a")}, nil,
			nil, []string{"a static-reservations-full"}},
		{"static, full, in a reservation that is no longer offered", 0, fixture.Pool(static(1), only, limited("2")), []node{held("a", inReservation("cr-9"))}, nil,
			nil, []string{"a static-reservations-full"}},
		{"static, full, in a reservation that is unavailable", 0, fixture.Pool(static(1), only, limited("2")), []node{held("a")}, noReservation,
			nil, []string{"a static-reservations-full"}},
		{"static, full, an on-demand node with the label of the reservation", 0, fixture.Pool(static(1), only, limited("2")), []node{held("a", ended)}, nil,
			nil, []string{"a static-reservations-full"}},
		{"static, with free capacity", 1, fixture.Pool(static(1), only, limited("2")), []node{held("a")}, nil,
			[]string{"Repair -a +t4g.medium"}, nil},
		{"static, full, with on-demand", 0, fixture.Pool(static(1), either, limited("2")), []node{held("a")}, nil,
			[]string{"Repair -a +t4g.medium"}, nil},
		// Karpenter replaces these two first, with NodeClaims whose launches fail.
		{"static, full, with on-demand that is unavailable", 0, fixture.Pool(static(1), either, limited("2")), []node{held("a")}, noOnDemand,
			nil, []string{"a no-replacement"}},
		{"static, full, with the gate off", 0, fixture.Pool(static(1), only, limited("2")), []node{held("a")}, gates(false, false),
			nil, []string{"a no-replacement"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, cat := reservedSnapshot(tt.free, tt.pool, tt.nodes...)
			s.Settings.Gates.TerminateFirstDrift = false
			s.Repair = &repair.PolicySet{Policies: repair.Provider(false), Unhealthy: intstr.FromString("100%"), TerminateFirst: true}
			if tt.edit != nil {
				tt.edit(&s)
			}
			found := Evaluate(s, instancetypes.New(s, cat), Options{})
			if diff := cmp.Diff(tt.want, describeReasons(s, found)); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.kept, describeKept(found)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRepairSkipsUnresolvedPool repairs the nodes of a NodePool while the EC2NodeClass of another, whose node is
// more urgent, is missing.
func TestRepairSkipsUnresolvedPool(t *testing.T) {
	other := fixture.Pool(never)
	other.Name = "other"
	s, cat := reservedSnapshot(0, fixture.Pool(static(1), allowing(karpenter.CapacityTypeReserved)),
		fixture.Node("a", "t4g.medium", sick(corev1.NodeReady, time.Hour), inReservation("cr-1")),
		fixture.Node("b", "t4g.medium", unready, filling, func(n *node) { n.NodePool, n.Labels[karpenter.NodePoolLabelKey] = other.Name, other.Name }))
	s.Repair = &repair.PolicySet{Policies: repair.Provider(false), Unhealthy: intstr.FromString("100%"), TerminateFirst: true}
	s.NodePools = append(s.NodePools, other)
	s.NodePools[0].Spec.Template.Spec.NodeClassRef.Name = "missing"
	found := Evaluate(s, instancetypes.New(s, cat), Options{})
	if diff := cmp.Diff([]string{"Repair -b +t4g.medium"}, describeReasons(s, found)); diff != "" {
		t.Error(diff)
	}
	if !slices.Contains(describeKept(found), "a no-replacement") {
		t.Error(describeKept(found))
	}
}
