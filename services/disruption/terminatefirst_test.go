package disruption

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// inReservation puts a node into a reservation.
func inReservation(id string) func(*node) {
	return func(n *node) {
		n.Labels[karpenter.CapacityTypeLabelKey] = karpenter.CapacityTypeReserved
		n.Labels[karpenter.LabelCapacityReservationID] = id
	}
}

// filling fills a t4g.medium with one pod.
func filling(n *node) { fixture.With(fixture.Pods(n.Name, 1, "1500m", "1Gi"))(n) }

// allowing sets the capacity types of a NodePool.
func allowing(capacityTypes ...string) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) {
		requirements := p.Spec.Template.Spec.Requirements
		for i := range requirements {
			if requirements[i].Key == karpenter.CapacityTypeLabelKey {
				requirements[i].Values = capacityTypes
			}
		}
	}
}

// limited sets limits.nodes.
func limited(nodes string) func(*karpenter.NodePool) {
	return func(p *karpenter.NodePool) {
		p.Spec.Limits = karpenter.Limits{karpenter.ResourceNodes: resource.MustParse(nodes)}
	}
}

// notReady makes a NodePool not ready.
func notReady(p *karpenter.NodePool) {
	p.Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionFalse}}
}

// reservedSnapshot is a snapshot with the gate on and the reservations cr-1 and cr-2 of t4g.medium, which have this
// many free instances.
func reservedSnapshot(free int64, pool karpenter.NodePool, nodes ...node) (planning.Snapshot, catalog.Catalogue) {
	s, cat := fixture.Snapshot(pool, nodes...), planningtest.NewCatalogue()
	s.Settings.Gates = planning.Gates{ReservedCapacity: true, StaticCapacity: true, TerminateFirstDrift: true}
	s.NodeClasses = slices.Clone(s.NodeClasses)
	for _, id := range []string{"cr-1", "cr-2"} {
		cat.Reservations = append(cat.Reservations, catalog.ReservationCount{ID: id, Count: free})
		s.NodeClasses[0].Status.CapacityReservations = append(s.NodeClasses[0].Status.CapacityReservations,
			karpenter.CapacityReservation{ID: id, InstanceType: "t4g.medium", AvailabilityZone: fixture.Zone})
	}
	cat.AsOf = s.TakenAt
	return s, cat
}

// describeKept returns the nodes that are kept, with their rules.
func describeKept(found Findings) (out []string) {
	for _, k := range found.Kept {
		out = append(out, k.Node+" "+k.Rule)
	}
	return out
}

// describeReasons returns the commands with the reasons why they terminate first.
func describeReasons(s planning.Snapshot, found Findings) (out []string) {
	for _, c := range found.Commands {
		text := describeFindings(s, c)
		if c.TerminateFirst != "" {
			text += " " + string(c.TerminateFirst)
		}
		out = append(out, text)
	}
	return out
}

// TestTerminateFirst follows Karpenter's pkg/controllers/disruption/terminatefirst_test.go. Each node is a t4g.medium, and each
// pod fills one.
func TestTerminateFirst(t *testing.T) {
	const reserved, onDemand = karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand
	only, either := allowing(reserved), allowing(reserved, onDemand)
	held := func(name, id string, edits ...func(*node)) node {
		return fixture.Node(name, "t4g.medium", append([]func(*node){drift(time.Hour), inReservation(id)}, edits...)...)
	}
	gateOff := func(s *planning.Snapshot) { s.Settings.Gates.TerminateFirstDrift = false }
	unavailable := func(ids ...string) func(*planning.Snapshot) {
		return func(s *planning.Snapshot) {
			for _, id := range ids {
				s.Unavailable = append(s.Unavailable, planning.Unavailable{
					Offering:    event.Offering{InstanceType: "t4g.medium", Zone: fixture.Zone, CapacityType: reserved},
					Reservation: id, Until: s.TakenAt.Add(time.Minute), Reason: "InvalidCapacityReservationState.Unavailable",
				})
			}
		}
	}
	noOnDemand := func(s *planning.Snapshot) {
		s.Unavailable = append(s.Unavailable, planning.Unavailable{Offering: event.Offering{CapacityType: onDemand}, Until: s.TakenAt.Add(time.Minute)})
	}
	fallback := func(s *planning.Snapshot) {
		pool := fixture.Pool()
		pool.Name = "fallback"
		s.NodePools[0].Spec.Weight = new(int32(10))
		s.NodePools = append(s.NodePools, pool)
	}
	inDeletion := func(n *node) { n.MarkedForDeletion = true }
	waiting := func(n *node) { // Its removal is confirmed, and its replacement is being launched.
		n.Proposal = &planning.Proposal{ID: "p", Method: string(StaticDrift), ConfirmedAt: fixture.Taken, Replacements: []string{"new"}}
	}
	for _, tt := range []struct {
		name  string
		free  int64
		pool  karpenter.NodePool
		nodes []node
		edit  func(*planning.Snapshot)
		want  []string
		kept  []string
	}{
		{"full, without another offering", 0, fixture.Pool(never, only), []node{held("a", "cr-1", filling)}, nil,
			[]string{"Drift -a no-reserved-capacity"}, nil},
		{"full, with the gate off", 0, fixture.Pool(never, only), []node{held("a", "cr-1", filling)}, gateOff,
			nil, []string{"a pods-unplaceable"}},
		{"full, and more pods than one instance holds", 0, fixture.Pool(never, only), []node{held("a", "cr-1", filling, with(3))}, nil,
			nil, []string{"a pods-unplaceable"}},
		{"full and unavailable", 0, fixture.Pool(never, only), []node{held("a", "cr-1", filling)}, unavailable("cr-1", "cr-2"),
			nil, []string{"a pods-unplaceable"}},
		{"full, while only another reservation is available", 0, fixture.Pool(never, only), []node{held("a", "cr-1", filling)}, unavailable("cr-1"),
			nil, []string{"a pods-unplaceable"}},
		{"full, with on-demand", 0, fixture.Pool(never, either), []node{held("a", "cr-1", filling)}, nil,
			[]string{"Drift -a +t4g.medium"}, nil},
		{"full, with an on-demand NodePool", 0, fixture.Pool(never, only), []node{held("a", "cr-1", filling)}, fallback,
			[]string{"Drift -a +t4g.medium"}, nil},
		{"unavailable, with an on-demand NodePool", 0, fixture.Pool(never, only), []node{held("a", "cr-1", filling)}, func(s *planning.Snapshot) {
			fallback(s)
			unavailable("cr-1", "cr-2")(s)
		}, []string{"Drift -a +t4g.medium"}, nil},
		{"with free capacity", 1, fixture.Pool(never, only), []node{held("a", "cr-1", filling)}, nil,
			[]string{"Drift -a +t4g.medium"}, nil},
		{"full, and without pods", 0, fixture.Pool(never, only), []node{held("a", "cr-1")}, nil,
			[]string{"Drift -a"}, nil},
		{"an on-demand node with the label of an ended reservation", 0, fixture.Pool(never, only), []node{held("a", "cr-1", filling, func(n *node) {
			n.Labels[karpenter.CapacityTypeLabelKey] = onDemand
		})}, nil, nil, []string{"a pods-unplaceable"}},
		{"a node of an unknown reservation", 0, fixture.Pool(never, only), []node{held("a", "cr-9", filling)}, nil,
			nil, []string{"a pods-unplaceable"}},
		{"two nodes of one reservation go one after the other", 0, fixture.Pool(never, only, fixture.Budgets("100%")), []node{held("a", "cr-1", filling), held("b", "cr-1", filling)}, nil,
			[]string{"Drift -a no-reserved-capacity"}, []string{"b pods-unplaceable"}},
		{"two nodes of two reservations go together", 0, fixture.Pool(never, only, fixture.Budgets("100%")), []node{held("a", "cr-1", filling), held("b", "cr-2", filling)}, nil,
			[]string{"Drift -a no-reserved-capacity", "Drift -b no-reserved-capacity"}, nil},
		{"not while the pods of another node need the capacity", 0, fixture.Pool(never, only, fixture.Budgets("100%")), []node{held("a", "cr-1", filling), held("b", "cr-1", filling, inDeletion)}, nil,
			nil, []string{"a pods-unplaceable", "b deleting"}},
		{"within the budget", 0, fixture.Pool(never, only, fixture.Budgets("0")), []node{held("a", "cr-1", filling)}, nil,
			nil, []string{"a budget"}},

		{"static, at its limit", 0, fixture.Pool(static(1), limited("1")), []node{fixture.Node("a", "t4g.medium", drift(1), filling)}, nil,
			[]string{"StaticDrift -a static-at-limit"}, nil},
		{"static, at its limit, up to the budget", 0, fixture.Pool(static(3), limited("3"), fixture.Budgets("2")),
			[]node{fixture.Node("a", "t4g.medium", drift(3)), fixture.Node("b", "t4g.medium", drift(2)), fixture.Node("c", "t4g.medium", drift(1))}, nil,
			[]string{"StaticDrift -a static-at-limit", "StaticDrift -b static-at-limit"}, []string{"c budget"}},
		{"static, at its limit, before the refill is initialized", 0, fixture.Pool(static(2), limited("2"), fixture.Budgets("1")),
			[]node{fixture.Node("a", "t4g.medium", drift(2)), fixture.Node("new", "t4g.medium", uninitialized)}, nil, nil, []string{"a budget", "new not-initialized"}},
		{"static, at its limit, before the refill is launched", 0, fixture.Pool(static(2), limited("2"), fixture.Budgets("1")),
			[]node{fixture.Node("a", "t4g.medium", drift(2)), fixture.Node("b", "t4g.medium", func(n *node) { n.MarkedForDeletion, n.Terminating = true, true })}, nil, nil, []string{"a budget", "b deleting"}},
		{"static, at its limit, with the gate off", 0, fixture.Pool(static(1), limited("1")), []node{fixture.Node("a", "t4g.medium", drift(1))}, gateOff,
			nil, []string{"a static-at-limit"}},
		{"static, at its limit, not ready", 0, fixture.Pool(static(1), limited("1"), notReady), []node{fixture.Node("a", "t4g.medium", drift(1))}, nil,
			nil, []string{"a static-at-limit"}},
		{"static, at its limit, being deleted", 0, fixture.Pool(static(1), limited("1"), func(p *karpenter.NodePool) { p.DeletionTimestamp = &metav1.Time{Time: fixture.Taken} }),
			[]node{fixture.Node("a", "t4g.medium", drift(1))}, nil, nil, []string{"a nodepool-deleting"}},
		{"static, below its limit", 0, fixture.Pool(static(1), limited("2")), []node{fixture.Node("a", "t4g.medium", drift(1))}, nil,
			[]string{"StaticDrift -a +t4g.medium"}, nil},
		{"static, at its limit because of a replacement", 0, fixture.Pool(static(2), limited("3"), fixture.Budgets("100%")),
			[]node{fixture.Node("a", "t4g.medium", drift(2)), fixture.Node("b", "t4g.medium", drift(1), waiting), fixture.Node("new", "t4g.medium", uninitialized)}, nil,
			nil, []string{"a no-replacement", "b proposal-confirmed", "new not-initialized"}},
		{"static, with one free place for two nodes", 0, fixture.Pool(static(2), limited("3"), fixture.Budgets("100%")),
			[]node{fixture.Node("a", "t4g.medium", drift(2)), fixture.Node("b", "t4g.medium", drift(1))}, nil,
			[]string{"StaticDrift -a +t4g.medium"}, []string{"b no-replacement"}},
		{"static, with too many nodes", 0, fixture.Pool(static(1), limited("1"), only), []node{held("a", "cr-1"), held("b", "cr-1")}, nil,
			nil, []string{"a no-replacement", "b no-replacement"}},

		{"static, full", 0, fixture.Pool(static(1), only), []node{held("a", "cr-1", filling)}, nil,
			[]string{"StaticDrift -a no-reserved-capacity"}, nil},
		{"static, full, at its limit", 0, fixture.Pool(static(1), only, limited("1")), []node{held("a", "cr-1")}, nil,
			[]string{"StaticDrift -a no-reserved-capacity"}, nil},
		{"static, full, with the gate off", 0, fixture.Pool(static(1), only), []node{held("a", "cr-1")}, gateOff,
			nil, []string{"a no-replacement"}},
		{"static, with free capacity", 1, fixture.Pool(static(1), only), []node{held("a", "cr-1")}, nil,
			[]string{"StaticDrift -a +t4g.medium"}, nil},
		{"static, full, with on-demand", 0, fixture.Pool(static(1), either), []node{held("a", "cr-1")}, nil,
			[]string{"StaticDrift -a +t4g.medium"}, nil},
		{"static, full, with on-demand that is unavailable", 0, fixture.Pool(static(1), either), []node{held("a", "cr-1")}, noOnDemand,
			nil, []string{"a no-replacement"}},
		{"static, full, a node of a reservation that is unavailable", 0, fixture.Pool(static(2), only, fixture.Budgets("100%")),
			[]node{held("a", "cr-1"), held("b", "cr-2")}, unavailable("cr-1"), []string{"StaticDrift -b no-reserved-capacity"}, []string{"a static-reservations-full"}},
		{"static, full, a node without reservation", 0, fixture.Pool(static(2), only, fixture.Budgets("1")),
			[]node{fixture.Node("a", "t4g.medium", drift(2*time.Hour)), held("b", "cr-1")}, nil, []string{"StaticDrift -b no-reserved-capacity"}, []string{"a static-reservations-full"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, cat := reservedSnapshot(tt.free, tt.pool, tt.nodes...)
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
			for _, c := range found.Commands {
				if c.TerminateFirst != "" && (len(c.Result.Nodes) > 0 || !strings.Contains(c.Why, "terminates first")) {
					t.Errorf("the command launches %d nodes: %s", len(c.Result.Nodes), c.Why)
				}
			}
		})
	}
}

func uninitialized(n *node) { n.Initialized, n.Ready = false, false }

// TestTerminateFirstNominates moves the pods that fit on other nodes there; only the others wait.
func TestTerminateFirstNominates(t *testing.T) {
	s, cat := reservedSnapshot(0, fixture.Pool(never, allowing(karpenter.CapacityTypeReserved)),
		fixture.Node("a", "t4g.medium", drift(time.Hour), inReservation("cr-1"), filling, with(1, func(s *planning.PodSpec) { s.Namespace = "small" })),
		fixture.Node("b", "t4g.medium", inReservation("cr-1"), with(2)))
	found := Evaluate(s, instancetypes.New(s, cat), Options{})
	if diff := cmp.Diff([]string{"Drift -a onto b no-reserved-capacity"}, describeReasons(s, found)); diff != "" {
		t.Fatal(diff)
	}
	if c := found.Commands[0]; len(c.Result.Nominations) != 1 || len(c.Refill) != 1 || c.PodsMoved != 2 || c.SavedPerHour != 0 {
		t.Errorf("%d nominations, %d refilled nodes, %d pods, saves %v", len(c.Result.Nominations), len(c.Refill), c.PodsMoved, c.SavedPerHour)
	}
}

// TestTerminateFirstIsConfirmed proposes a termination, and confirms it only while nothing else is possible.
func TestTerminateFirstIsConfirmed(t *testing.T) {
	for name, tt := range map[string]struct {
		free int64
		want string
	}{
		"still full": {0, "confirmed Drift a"}, "with free capacity now": {1, "dropped Drift a"},
	} {
		build := func(free int64) (planning.Snapshot, instancetypes.InstanceTypes) {
			s, cat := reservedSnapshot(free, fixture.Pool(never, allowing(karpenter.CapacityTypeReserved)), fixture.Node("a", "t4g.medium", drift(time.Hour), inReservation("cr-1"), filling))
			return s, instancetypes.New(s, cat)
		}
		s, stock := build(0)
		s = carrying(s, Evaluate(s, stock, Options{}), time.Minute)
		_, stock = build(tt.free)
		var got []string
		for _, d := range decidePhases(&s, Evaluate(s, stock, Options{}).Commands) {
			got = append(got, string(d.phase)+" "+string(d.Method)+" "+strings.Join(d.claims, ","))
		}
		if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestTerminateFirstInWaves counts a terminated node as one of the wave.
func TestTerminateFirstInWaves(t *testing.T) {
	pool := fixture.Pool(static(3), limited("3"), fixture.Budgets("100%"), withAnnotations(map[string]string{"joist.sh/drift-canary": "1", "joist.sh/drift-bake": "10m"}))
	s, cat := reservedSnapshot(0, pool, fixture.Node("a", "t4g.medium", drift(3)), fixture.Node("b", "t4g.medium", drift(2)), fixture.Node("c", "t4g.medium", drift(1)))
	found := Evaluate(s, instancetypes.New(s, cat), Options{})
	if diff := cmp.Diff([]string{"StaticDrift -a static-at-limit"}, describeReasons(s, found)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b canary", "c canary"}, describeKept(found)); diff != "" {
		t.Error(diff)
	}
}
