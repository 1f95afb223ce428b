package solver_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

func inZone(letter string) func(*planning.Node) {
	return func(n *planning.Node) { n.Labels[corev1.LabelTopologyZone] = "ap-northeast-2" + letter }
}

// apartOver gives pods of an app anti-affinity to each other over the key.
func apartOver(key, app string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Labels = map[string]string{"app": app}
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(key, s.Labels)}}
	}
}

// avoidingOver gives pods of an app anti-affinity to those of another app.
func avoidingOver(key, other, app string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		apartOver(key, other)(s)
		s.Labels = map[string]string{"app": app}
	}
}

func besideOver(key, app string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Labels = map[string]string{"app": app}
		s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(key, s.Labels)}}
	}
}

func spreadIn(key, app string) func(*planning.PodSpec) {
	return func(s *planning.PodSpec) {
		s.Labels = map[string]string{"app": app}
		s.Spread = spreadOver(key, s.Labels)
	}
}

// closed keeps a pool from launching nodes.
func closed(s *planning.Snapshot) {
	s.NodePools[0].Spec.Limits = karpenter.Limits{karpenter.ResourceNodes: resource.MustParse("0")}
}

func queuedPod(name string, edit func(*planning.PodSpec)) planning.PodClass {
	return planningtest.NewPods(name, 1, "500m", "500Mi", edit)
}

// TestRemovedPodsAreNotCounted removes the first node while nothing can be launched.
func TestRemovedPodsAreNotCounted(t *testing.T) {
	zone, host := corev1.LabelTopologyZone, corev1.LabelHostname
	ported := func(s *planning.PodSpec) { s.HostPorts = []planning.HostPort{{Port: 80}} }
	porting := func(n *planning.Node) { n.HostPorts = []planning.HostPort{{Port: 80}} }
	for _, tt := range []struct {
		name  string
		nodes []planning.Node
		onto  map[string]int
	}{
		{"the removed pod's zone is free", []planning.Node{
			node("old", running(queuedPod("a", apartOver(zone, "a")))), node("other"),
		}, map[string]int{"other": 1}},
		{"another pod's zone is not free", []planning.Node{
			node("old", inZone("b"), running(queuedPod("a", apartOver(zone, "a")))), node("other", running(queuedPod("b", apartOver(zone, "a")))),
		}, map[string]int{}},
		{"pods with self-affinity may choose another node", []planning.Node{
			node("old", running(planningtest.NewPods("a", 2, "500m", "500Mi", besideOver(host, "a")))), node("other"),
		}, map[string]int{"other": 2}},
		{"a pod with affinity follows another pod", []planning.Node{
			node("old", running(queuedPod("a", besideOver(host, "a")))), node("other"), node("theirs", running(queuedPod("b", besideOver(host, "a")))),
		}, map[string]int{"theirs": 1}},
		{"spread over zones counts the remaining pods", []planning.Node{
			node("old", running(queuedPod("a", spreadIn(zone, "a")))), node("other"),
			node("theirs", inZone("b"), running(queuedPod("b", spreadIn(zone, "a")))),
		}, map[string]int{"other": 1}},
		{"anti-affinity over nodes counts the remaining pods", []planning.Node{
			node("old", running(queuedPod("a", apartOver(host, "a")))), node("a-taken", running(queuedPod("b", apartOver(host, "a")))), node("other"),
		}, map[string]int{"other": 1}},
		{"anti-affinity of remaining pods excludes their zone", []planning.Node{
			node("old", inZone("b"), running(queuedPod("a", requireLabels("app", "a")))), node("a-taken", running(queuedPod("b", apartOver(zone, "a")))),
			node("other", inZone("c")),
		}, map[string]int{"other": 1}},
		{"anti-affinity over nodes of remaining pods of another app excludes their node", []planning.Node{
			node("old", running(queuedPod("a", requireLabels("app", "a")))), node("a-taken", running(queuedPod("b", avoidingOver(host, "a", "b")))), node("other"),
		}, map[string]int{"other": 1}},
		{"host ports of the removed node are free", []planning.Node{
			node("old", porting, running(queuedPod("a", ported))), node("a-taken", porting), node("other"),
		}, map[string]int{"other": 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := inZones().Snapshot
			snapshot.Nodes = tt.nodes
			closed(&snapshot)
			onto := map[string]int{}
			for _, n := range solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue())).SimulateRemoval(0).Nominations {
				onto[n.Node]++
			}
			if diff := cmp.Diff(tt.onto, onto); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCommittedPodsCount commits the removal of the first node, whose pod goes to a new node in its zone,
// and then removes the second, whose pod has the same app.
func TestCommittedPodsCount(t *testing.T) {
	zone := corev1.LabelTopologyZone
	for _, tt := range []struct {
		name string
		edit func(*planning.PodSpec)
		// second is the zone of the second pod's new node; empty if it gets none.
		second string
	}{
		{"spread", spreadIn(zone, "a"), "ap-northeast-2b"},
		{"spread over selected pods", func(s *planning.PodSpec) {
			spreadIn(zone, "a")(s)
			s.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"}
		}, "ap-northeast-2b"},
		{"apart", apartOver(zone, "a"), "ap-northeast-2b"},
		{"pod affinity", besideOver(zone, "a"), "ap-northeast-2a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := inZones().Snapshot
			requirements := snapshot.NodePools[0].Spec.Template.Spec.Requirements
			requirements[len(requirements)-1].Values = []string{"ap-northeast-2a", "ap-northeast-2b"}
			big := func(name string) planning.PodClass { return planningtest.NewPods(name, 1, "1500m", "500Mi", tt.edit) }
			snapshot.Nodes = []planning.Node{node("first", running(big("a"))), node("second", running(big("b")))}
			simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
			both := simulation.SimulateRemoval(0, 1)
			first := both
			first.Nodes = nil
			for _, n := range both.Nodes {
				if n.Pods[0].Pod.Node == "first" {
					n.Pods = n.Pods[:1]
					n.Requirements = n.Requirements.WithRequirement(zone, planning.In("ap-northeast-2a"))
					first.Nodes = append(first.Nodes, n)
				}
			}
			simulation.Commit(first, 0)
			got := ""
			for _, n := range simulation.SimulateRemoval(1).Nodes {
				got, _ = n.Requirements[zone].SingleValue()
			}
			if got != tt.second {
				t.Errorf("second pod on %q, want %q", got, tt.second)
			}
		})
	}
}

// TestCommitsUseScarceResources commits a first result that uses the last of a scarce resource.
func TestCommitsUseScarceResources(t *testing.T) {
	big := func(name string) func(*planning.Node) { return running(planningtest.NewPods(name, 1, "1500m", "1Gi")) }
	snapshot := planningtest.WithoutSpot(planningtest.NewBatch()).Snapshot
	snapshot.Nodes, snapshot.PodsUseNodeSubnets = []planning.Node{node("a", big("a")), node("b", big("b"))}, true
	class := snapshot.NodeClasses[0].Name
	for _, tt := range []struct {
		name  string
		stock func(*instancetypes.InstanceTypes)
		rule  string
	}{
		{"addresses", func(s *instancetypes.InstanceTypes) {
			s.FreeIPs = map[string]map[string]int64{class: {"ap-northeast-2a": 3, "ap-northeast-2c": 0}}
		}, planning.RuleAddresses},
		{"partitions of a spread placement group", func(s *instancetypes.InstanceTypes) {
			s.SpreadCapacity = map[string]map[string]int{class: {"ap-northeast-2a": 1, "ap-northeast-2c": 0}}
		}, planning.RuleAddresses},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stock := instancetypes.New(snapshot, planningtest.NewCatalogue())
			tt.stock(&stock)
			simulation := solver.NewSimulation(snapshot, stock)
			first := simulation.SimulateRemoval(0)
			if len(first.Nodes) != 1 {
				t.Fatalf("%+v, want a new node", first)
			}
			simulation.Commit(first, 0)
			if second := simulation.SimulateRemoval(1); len(second.Unplaced) != 1 || second.Unplaced[0].Rejections[0].Rule != tt.rule {
				t.Errorf("%+v, want no capacity left", second)
			}
		})
	}
}

// TestCommitsUseReservations uses the last instance of a reservation.
func TestCommitsUseReservations(t *testing.T) {
	big := func(name string) func(*planning.Node) { return running(planningtest.NewPods(name, 1, "1500m", "1Gi")) }
	s, cat := planningtest.WithoutSpot(planningtest.NewBatch()).Snapshot, planningtest.NewCatalogue()
	s.Settings.Gates.ReservedCapacity = true
	requirements := &s.NodePools[0].Spec.Template.Spec.Requirements
	for i := range *requirements {
		if (*requirements)[i].Key == karpenter.CapacityTypeLabelKey {
			(*requirements)[i].Values = []string{karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand}
		}
	}
	cat.AsOf = s.TakenAt
	cat.Reservations = append(cat.Reservations, catalog.ReservationCount{ID: "cr-1", Count: 1})
	s.NodeClasses[0].Status.CapacityReservations = []karpenter.CapacityReservation{{ID: "cr-1", InstanceType: "t4g.medium", AvailabilityZone: "ap-northeast-2a"}}
	s.Nodes = []planning.Node{node("a", big("a")), node("b", big("b"))}
	stock := instancetypes.New(s, cat)
	simulation := solver.NewSimulation(s, stock)
	first := simulation.SimulateRemoval(0)
	if len(first.Nodes) != 1 || first.Nodes[0].Offerings[0].CapacityType != karpenter.CapacityTypeReserved {
		t.Fatalf("%+v, want the reserved instance", first.Nodes)
	}
	simulation.Commit(first, 0)
	if second := simulation.SimulateRemoval(1); len(second.Nodes) != 1 || second.Nodes[0].Offerings[0].CapacityType == karpenter.CapacityTypeReserved {
		t.Errorf("%+v, want another instance", second.Nodes)
	}
	joined := simulation.ProjectSnapshot()
	fresh := joined.Nodes[len(joined.Nodes)-1]
	if fresh.Labels[karpenter.LabelCapacityReservationID] != "cr-1" || fresh.Labels[karpenter.CapacityTypeLabelKey] != karpenter.CapacityTypeReserved {
		t.Errorf("%v, want the labels of the reservation", fresh.Labels)
	}
}

// TestJoinedNodesHaveReservationLabels moves a first pod to a new node, and then a second pod that selects nodes by the labels of
// reservations or instance types. It fits on the new node only if that has the labels of its own reservation, or none if it is on
// demand, and those of its type.
func TestJoinedNodesHaveReservationLabels(t *testing.T) {
	const kind = karpenter.LabelCapacityReservationType
	without := func(key string) func(*planning.PodSpec) {
		return func(s *planning.PodSpec) {
			s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpDoesNotExist}}}}}}}
		}
	}
	onDemand := selecting(karpenter.CapacityTypeLabelKey, karpenter.CapacityTypeOnDemand)
	for _, tt := range []struct {
		name          string
		first, second func(*planning.PodSpec)
		fits          bool
	}{
		{"type of the first reservation", selecting(kind, "default"), selecting(kind, "default"), true},
		{"type of the second reservation", selecting(kind, "capacity-block"), selecting(kind, "capacity-block"), true},
		{"type of the other reservation", selecting(kind, "default"), selecting(kind, "capacity-block"), false},
		{"interruptible", selecting(kind, "capacity-block"), selecting(karpenter.LabelCapacityReservationInterruptible, "true"), true},
		{"not interruptible", selecting(kind, "default"), selecting(karpenter.LabelCapacityReservationInterruptible, "true"), false},
		{"ID", selecting(kind, "capacity-block"), selecting(karpenter.LabelCapacityReservationID, "cr-2"), true},
		{"an on-demand node has no reservation", onDemand, without(kind), true},
		{"size of the type", selecting(kind, "default"), selecting(karpenter.LabelInstanceSize, "medium"), true},
		{"another size", selecting(kind, "default"), selecting(karpenter.LabelInstanceSize, "large"), false},
		{"a reserved node has a reservation", selecting(kind, "default"), without(kind), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, cat := reservedCluster(1, karpenter.CapacityTypeReserved, karpenter.CapacityTypeOnDemand)
			cat.Reservations = append(cat.Reservations, catalog.ReservationCount{ID: "cr-2", Count: 1})
			reservations := &s.NodeClasses[0].Status.CapacityReservations
			*reservations = append(*reservations, karpenter.CapacityReservation{
				ID: "cr-2", InstanceType: "t4g.medium", AvailabilityZone: "ap-northeast-2a", ReservationType: karpenter.CapacityReservationTypeCapacityBlock, Interruptible: true,
			})
			s.Nodes = []planning.Node{
				node("a", running(planningtest.NewPods("a", 1, "600m", "64Mi", tt.first))), node("b", running(planningtest.NewPods("b", 1, "600m", "64Mi", tt.second))),
			}
			stock := instancetypes.New(s, cat)
			for _, one := range stock.ByNodeClass[s.NodeClasses[0].Name] {
				slices.Reverse(one.Offerings) // The reservations come first.
			}
			simulation := solver.NewSimulation(s, stock)
			first := simulation.SimulateRemoval(0)
			if len(first.Nodes) != 1 {
				t.Fatalf("%+v, want a new node", first)
			}
			simulation.Commit(first, 0)
			joined := simulation.ProjectSnapshot()
			closed(&joined)
			at := slices.IndexFunc(joined.Nodes, func(n planning.Node) bool { return n.Name == "b" })
			second := solver.NewSimulation(joined, instancetypes.New(joined, cat)).SimulateRemoval(at)
			if fits := len(second.Nominations) == 1; fits != tt.fits || len(second.Nodes) > 0 {
				t.Errorf("the second pod fits on the new node: %t, want %t: %+v", fits, tt.fits, second.Unplaced)
			}
		})
	}
}

// TestJoinedNodeIsComplete checks the node that a planned node becomes.
func TestJoinedNodeIsComplete(t *testing.T) {
	snapshot := planningtest.WithoutSpot(planningtest.NewBatch()).Snapshot
	snapshot.NodePools[0].Spec.Template.Spec.ExpireAfter = karpenter.DurationOf(time.Hour)
	snapshot.NodePools[0].Spec.Template.Spec.TerminationGracePeriod = nil
	snapshot.DaemonSets = []planning.PodSpec{{Namespace: "kube-system", Requests: planningtest.NewRequests("100m", "64Mi")}}
	volume := func(s *planning.PodSpec) { s.Volumes = []planning.Volume{{Driver: "ebs.csi.aws.com"}} }
	moved := planningtest.NewPods("web", 2, "700m", "1Gi", volume)
	small := planningtest.NewPods("small", 1, "100m", "100Mi")
	snapshot.Nodes = []planning.Node{node("old", running(moved)), node("other", running(planningtest.NewPods("db", 1, "1500m", "1Gi"))), node("third", running(small))}
	simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
	result := simulation.SimulateRemoval(0, 2)
	simulation.Commit(result, 0, 2)
	joined := simulation.ProjectSnapshot()
	if len(joined.Nodes) != 2 || joined.Nodes[0].Name != "other" || !joined.Nodes[0].LastPodEvent.Equal(snapshot.TakenAt) {
		t.Fatalf("%d nodes, the first one %s", len(joined.Nodes), joined.Nodes[0].Name)
	}
	fresh := joined.Nodes[1]
	volumes, cpu := fresh.Used[planning.AttachLimitResource("ebs.csi.aws.com")], fresh.Used[corev1.ResourceCPU]
	if volumes.Value() != 2 || cpu.MilliValue() != 1500 {
		t.Errorf("new node uses %s of cpu and %s volumes, want 1500m and 2", cpu.String(), volumes.String())
	}
	if daemons := fresh.DaemonRequests[corev1.ResourceCPU]; daemons.MilliValue() != 100 {
		t.Errorf("daemons of the new node use %s, want 100m", daemons.String())
	}
	if fresh.Labels[corev1.LabelInstanceTypeStable] != result.Nodes[0].Offerings[0].InstanceType || fresh.Labels[corev1.LabelHostname] != fresh.Name ||
		!fresh.ExpiresAt.Equal(snapshot.TakenAt.Add(time.Hour)) || !fresh.InitializedAt.Equal(snapshot.TakenAt) || !fresh.LastPodEvent.Equal(snapshot.TakenAt) {
		t.Errorf("new node = %+v", fresh)
	}
	for key, values := range planning.RegistrationLabels {
		if !values.Has(fresh.Labels[key]) {
			t.Errorf("the new node has the label %s=%q", key, fresh.Labels[key])
		}
	}
	snapshot.NodePools[0].Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Minute}
	if limited := simulation.ProjectSnapshot().Nodes[1]; fresh.HasTerminationGracePeriod || !limited.HasTerminationGracePeriod {
		t.Errorf("the new node has a termination grace period: %t, want false; with one in its NodePool: %t", fresh.HasTerminationGracePeriod, limited.HasTerminationGracePeriod)
	}
}

// TestCommittedPodsCountOnTheirNode commits the removal of the first node, and removes the second while
// nothing can be launched.
func TestCommittedPodsCountOnTheirNode(t *testing.T) {
	zone := corev1.LabelTopologyZone
	port := []planning.HostPort{{Port: 80}}
	ported := func(s *planning.PodSpec) { s.HostPorts = port }
	for _, tt := range []struct {
		name          string
		edit          func(*planning.PodSpec)
		ports         []planning.HostPort
		zones         []string
		first, second string
	}{
		{"apart", apartOver(zone, "a"), nil, []string{"b", "c", "a", "b"}, "third", "zfourth"},
		{"spread", spreadIn(zone, "a"), nil, []string{"b", "c", "a", "b"}, "third", "zfourth"},
		{"port", ported, port, []string{"a", "a", "a", "a"}, "third", "zfourth"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := inZones().Snapshot
			snapshot.Nodes = []planning.Node{
				node("first", inZone(tt.zones[0]), running(queuedPod("a", tt.edit))), node("second", inZone(tt.zones[1]), running(queuedPod("b", tt.edit))),
				node("third", inZone(tt.zones[2])), node("zfourth", inZone(tt.zones[3])),
			}
			snapshot.Nodes[0].HostPorts, snapshot.Nodes[1].HostPorts = tt.ports, tt.ports
			closed(&snapshot)
			simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
			first := simulation.SimulateRemoval(0)
			if len(first.Nominations) != 1 || first.Nominations[0].Node != tt.first {
				t.Fatalf("first pod on %+v, want %s", first.Nominations, tt.first)
			}
			simulation.Commit(first, 0)
			if second := simulation.SimulateRemoval(1); len(second.Nominations) != 1 || second.Nominations[0].Node != tt.second {
				t.Errorf("second pod on %+v, want %s", second.Nominations, tt.second)
			}
		})
	}
}

// TestRemovedPodsWithPortsAndSpread moves a pod with a host port and a spread over zones from any of three nodes to the only other
// node that has the port free.
func TestRemovedPodsWithPortsAndSpread(t *testing.T) {
	port := []planning.HostPort{{Port: 80}}
	for old := range 3 {
		snapshot := inZones().Snapshot
		for i, name := range []string{"a", "b", "c"} {
			snapshot.Nodes = append(snapshot.Nodes, node(name, inZone(name)))
			snapshot.Nodes[i].HostPorts = port
		}
		pod := queuedPod("web", func(s *planning.PodSpec) { spreadIn(corev1.LabelTopologyZone, "web")(s); s.HostPorts = port })
		running(pod)(&snapshot.Nodes[old])
		free := (old + 1) % 3
		snapshot.Nodes[free].HostPorts = nil
		closed(&snapshot)
		result := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue())).SimulateRemoval(old)
		if len(result.Nominations) != 1 || result.Nominations[0].Node != snapshot.Nodes[free].Name {
			t.Errorf("the pod of %s moves to %+v, want %s: %+v", snapshot.Nodes[old].Name, result.Nominations, snapshot.Nodes[free].Name, result.Unplaced)
		}
	}
}

// TestZoneOfRemovedNodeIsNoDomain has a spread that would be violated if the zone of the removed node,
// which has no other node, still counted as empty.
func TestZoneOfRemovedNodeIsNoDomain(t *testing.T) {
	spreading := spreadIn(corev1.LabelTopologyZone, "a")
	snapshot := inZones().Snapshot
	snapshot.NodePools = nil
	snapshot.Nodes = []planning.Node{
		node("old", inZone("b"), running(queuedPod("a", spreading))), node("theirs", running(queuedPod("b", spreading))), node("other", inZone("a")),
	}
	result := solver.NewSimulation(snapshot, instancetypes.InstanceTypes{}).SimulateRemoval(0)
	if len(result.Nominations) != 1 {
		t.Errorf("%+v, want the pod in the only remaining zone", result)
	}
}

// TestOneForOne replaces a node with two pods by at most one node. The planner would otherwise use one
// node or two.
func TestOneForOne(t *testing.T) {
	for _, tt := range []struct {
		name string
		cpus [2]string
		edit func(*planning.PodSpec)
		// placed is how many of the pods are placed.
		placed int
	}{
		{"two pods on one node", [2]string{"1500m", "1500m"}, func(*planning.PodSpec) {}, 2},
		{"two pods with anti-affinity", [2]string{"1500m", "1500m"}, apartOver(corev1.LabelHostname, "a"), 1},
		{"more than any type has", [2]string{"2500m", "2500m"}, func(*planning.PodSpec) {}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := inZones().Snapshot
			snapshot.Nodes = []planning.Node{node("old", running(
				planningtest.NewPods("a", 1, tt.cpus[0], "1Gi", tt.edit), planningtest.NewPods("b", 1, tt.cpus[1], "1Gi", tt.edit)))}
			got := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue())).SimulateRemovalWithOneNode(0)
			if len(got.Nodes) != 1 || len(got.Nodes[0].Pods) != tt.placed || countUnplaced(got) != 2-tt.placed {
				t.Errorf("%s", describeResult(got))
			}
		})
	}
}

// TestConsolidateClosesNodes removes the first node, whose pod fits on the second.
func TestConsolidateClosesNodes(t *testing.T) {
	now := planningtest.Now
	plain := func(*planning.PodSpec) {}
	ago := func(event, initialized time.Duration) func(*planning.Node) {
		return func(n *planning.Node) {
			if n.InitializedAt = now.Add(-initialized); event > 0 {
				n.LastPodEvent = now.Add(-event)
			}
		}
	}
	for _, tt := range []struct {
		name  string
		after karpenter.NillableDuration
		edit  func(*planning.Node)
		open  bool
	}{
		{"last pod event is old", karpenter.DurationOf(time.Minute), ago(time.Minute, time.Hour), true},
		{"last pod event is recent", karpenter.DurationOf(time.Minute), ago(59*time.Second, time.Hour), false},
		{"no pod event, young node", karpenter.DurationOf(time.Minute), ago(0, 59*time.Second), false},
		{"no pod event, old node", karpenter.DurationOf(time.Minute), ago(0, time.Minute), true},
		{"consolidateAfter of zero", karpenter.DurationOf(0), ago(time.Nanosecond, time.Hour), true},
		{"never", karpenter.NillableDuration{}, ago(time.Second, time.Hour), true},
		{"node of a pool that is not ready", karpenter.DurationOf(time.Minute), ago(time.Second, time.Hour), true},
		{"node of another pool", karpenter.DurationOf(time.Minute), func(n *planning.Node) { ago(time.Second, time.Hour)(n); n.NodePool = "other" }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot := inZones().Snapshot
			closed(&snapshot)
			snapshot.NodePools[0].Spec.Disruption.ConsolidateAfter = tt.after
			snapshot.Nodes = []planning.Node{node("old", running(queuedPod("a", plain))), node("other", tt.edit)}
			if tt.name == "node of a pool that is not ready" {
				snapshot.NodePools[0].Status.Conditions = nil
			}
			simulation := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
			for name, got := range map[string]planning.Result{"Consolidate": simulation.SimulateConsolidation(0), "WithoutForOne": simulation.SimulateRemovalWithOneNode(0)} {
				if len(got.Nominations) > 0 != tt.open {
					t.Errorf("%s: %+v", name, got)
				}
			}
			if got := simulation.SimulateRemoval(0); len(got.Nominations) != 1 {
				t.Errorf("drift: %+v", got)
			}
			snapshot.PendingPods, snapshot.Nodes[0].Pods = []planning.PodClass{queuedPod("w", plain)}, nil
			waits := solver.NewSimulation(snapshot, instancetypes.New(snapshot, planningtest.NewCatalogue()))
			if got := waits.ProjectSnapshot(); len(got.Nodes[0].Pods)+len(got.Nodes[1].Pods) == 0 {
				t.Errorf("the pending pod was not placed: %+v", got.Nodes)
			}
		})
	}
}
