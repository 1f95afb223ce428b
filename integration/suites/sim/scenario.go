package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// FaultPoint is one point of a scenario at which a service crashes or pauses: before or after the n-th write of all
// services. The point after the write that deletes a message is after the acknowledgement.
type FaultPoint struct {
	Write int
	After bool
	// Pause is how long the service pauses instead of crashing. With a pause, each service has two replicas, so that the other
	// one acts meanwhile, and Deployment guestWorkload exists.
	Pause time.Duration
	// Meanwhile happens when the pause begins. The zero ClusterChange is nothing.
	Meanwhile ClusterChange
}

// FaultResult is the result of a scenario with a fault.
type FaultResult struct {
	Report
	// Actor and Verb are the service and the write at which it crashed or paused. Reached is false if no service did.
	Actor, Verb string
	Reached     bool
	// Writes are all writes of the scenario in their order, as "lifecycle-0 cluster.update NodeClaim". The last word
	// is the kind of the object or the name of the queue.
	Writes []string
}

// FaultScenario is a sequence of events without any fault but one crash or pause.
type FaultScenario struct {
	Name  string
	sizes replicaCounts
	// millicores are the CPU requests of a pod, by Deployment.
	millicores map[string]int64
	// reserved is the number of instances in a capacity reservation.
	reserved int
	// capacityType is the only one that the NodePool may use; "" leaves the choice.
	capacityType string
	// repairs turns node repair on.
	repairs bool
	play    func(*sim, context.Context) error
}

// Interruption is a scenario in which pods and nodes start, EC2 interrupts one node, and all pods are removed.
var Interruption = FaultScenario{
	Name: "interruption", sizes: replicaCounts{"web": 6, "batch": 8}, millicores: map[string]int64{"web": 900, "batch": 400}, play: (*sim).playInterruption,
}

// Drift is a scenario in which a node with pods drifts and is replaced. Its points begin at the drift.
var Drift = FaultScenario{Name: "replaced", sizes: replicaCounts{"web": 2}, millicores: map[string]int64{"web": 900}, play: (*sim).playDrift}

// TerminateFirst is a scenario in which a node in a full capacity reservation drifts. It is removed before its
// replacement is launched, which uses its place. Its points begin at the drift.
var TerminateFirst = FaultScenario{
	Name: "terminated first", sizes: replicaCounts{"web": 2}, millicores: map[string]int64{"web": 900}, reserved: 1,
	capacityType: karpenter.CapacityTypeReserved, play: (*sim).playDrift,
}

// Reboot is a scenario in which an unhealthy node is rebooted. Its points begin when it is unhealthy.
var Reboot = FaultScenario{Name: "rebooted", sizes: replicaCounts{"web": 2}, millicores: map[string]int64{"web": 900}, repairs: true, play: (*sim).playReboot}

// Consolidation is a scenario in which most pods are removed, and the others move to one node. Its points begin at the removal.
var Consolidation = FaultScenario{
	Name: "consolidated", sizes: replicaCounts{"web": 6, "batch": 8}, millicores: map[string]int64{"web": 900, "batch": 400},
	capacityType: karpenter.CapacityTypeOnDemand, play: (*sim).playConsolidation,
}

// PlayScenario runs a scenario, in which one service crashes or pauses at one point. At Write 0 none does.
func PlayScenario(tale FaultScenario, point FaultPoint) (FaultResult, error) {
	const seed = 1
	ctx := context.Background()
	s := &sim{engine: newEngine(seed), faults: map[string]int{}, finalSizes: maps.Clone(tale.sizes)}
	workload := memworkload.Typical("", nil)
	workload.ForgetAfter = time.Minute
	options := embedded.Options{
		Seed: seed, Region: "us-west-2", Families: instanceFamilies, Tap: s.interceptCall, CacheDelay: 50 * time.Millisecond, Workload: &workload,
		Gates: planning.Gates{ReservedCapacity: tale.reserved > 0, TerminateFirstDrift: tale.reserved > 0},
		Observe: func(actor string, m message, began time.Time, err error) {
			s.checker.checkHandled(actor, m, began, err)
		},
	}
	if point.Pause > 0 {
		options.Replicas = 2
	}
	if err := (seedFeatures{repairs: tale.repairs}).setRepair(&options); err != nil {
		return FaultResult{}, err
	}
	world, err := embedded.New(options)
	if err != nil {
		return FaultResult{}, err
	}
	s.world = world
	pool, class := newNodePool("default", 16, 8), newNodeClass(world)
	if tale.reserved > 0 {
		tale.reserve(world, class)
	}
	if tale.capacityType != "" {
		requireCapacityType(pool, tale.capacityType)
	}
	s.checker = newChecker(world, map[string]corev1.ResourceList{"default": corev1.ResourceList(pool.Spec.Limits)})
	s.onCall = s.checker.checkCall
	s.chaos = &chaos{sim: s, isStopped: true}
	defer s.endTasks()
	var result FaultResult
	s.chooseFault = s.stopAt(point, &result)
	objects := []cluster.Object{class, pool}
	for _, name := range slices.Sorted(maps.Keys(tale.millicores)) {
		objects = append(objects, newDeployment(name, tale.millicores[name]))
	}
	if point.Pause > 0 {
		objects = append(objects, protectedDeployment(newDeployment(guestWorkload, 50), "true"))
	}
	if err := world.Apply(ctx, objects...); err != nil {
		return FaultResult{}, err
	}
	err = tale.play(s, ctx)
	result.Report = s.makeReport(seed)
	return result, err
}

// reserve adds the capacity reservation, and selects it in the class.
func (c FaultScenario) reserve(w *embedded.EmbeddedCluster, class *karpenter.EC2NodeClass) {
	tags := map[string]string{"team": "web"}
	w.Cloud.AddReservation(cloud.Reservation{InstanceType: "m6g.large", Zone: w.AWS.Subnets[0].Zone, Available: c.reserved, Tags: tags})
	class.Spec.CapacityReservationSelectorTerms = []karpenter.CapacityReservationSelectorTerm{{Tags: tags}}
}

// requireCapacityType lets a NodePool use one capacity type only.
func requireCapacityType(pool *karpenter.NodePool, capacityType string) {
	for i := range pool.Spec.Template.Spec.Requirements {
		if r := &pool.Spec.Template.Spec.Requirements[i]; r.Key == karpenter.CapacityTypeLabelKey {
			r.Values = []string{capacityType}
		}
	}
}

// stopAt returns a chooseFault that crashes or pauses at one write only.
func (s *sim) stopAt(point FaultPoint, result *FaultResult) func(embedded.Call, int, callPhase) callFault {
	leases, number := map[string]int{}, map[int]int{}
	return func(call embedded.Call, serial int, m callPhase) callFault {
		if m == beforeCall && call.Writes && s.countsWrites && (!isLeaseRenewal(call) || leases[call.Actor] < maxLeaseWrites) {
			result.Writes = append(result.Writes, nameWrite(call))
			number[serial] = len(result.Writes)
			if isLeaseRenewal(call) {
				leases[call.Actor]++
			}
		}
		if n, counted := number[serial]; result.Reached || !counted || point.Write != n || point.After != (m == afterCall) {
			return callFault{}
		}
		result.Reached, result.Actor, result.Verb = true, call.Actor, call.Port+"."+call.Verb
		if point.Pause == 0 {
			return callFault{crash: true}
		}
		s.chaos.makeChange(point.Meanwhile)
		return callFault{pause: point.Pause}
	}
}

// nameWrite names a write by its service, its call, and the kind of object or the queue.
func nameWrite(call embedded.Call) string {
	name := call.Actor + " " + call.Port + "." + call.Verb
	if call.Port != "cluster" && call.Port != "queue" {
		return name
	}
	about, _, _ := strings.Cut(call.About, " ")
	return name + " " + about
}

// maxLeaseWrites is how many Lease renewals of each actor count as crash points, because all of them are alike.
const maxLeaseWrites = 3

func isLeaseRenewal(call embedded.Call) bool {
	return call.Port == "cluster" && call.Verb == "update" && strings.HasPrefix(call.About, "Lease ")
}

func (s *sim) playInterruption(ctx context.Context) error {
	s.countsWrites = true
	if err := s.requireWithin(ctx, "every pod runs", s.finalSizes, s.allPodsRun); err != nil {
		return err
	}
	var warned memcloud.Record
	for _, r := range s.world.Cloud.Records() {
		if r.Ended.IsZero() && s.world.Cloud.InterruptSpot(r.ID) {
			warned = r
			break
		}
	}
	replaced := func() bool {
		r, ok := s.world.Cloud.Record(warned.ID)
		return ok && !r.Gone.IsZero() && s.allPodsRun()
	}
	if err := s.requireWithin(ctx, "an interrupted node is replaced", s.finalSizes, replaced); err != nil {
		return err
	}
	return s.requireWithin(ctx, "no pod, node or instance is left", s.finalSizes.zeroCounts(), s.isEmpty)
}

func (s *sim) playDrift(ctx context.Context) error {
	if err := s.requireWithin(ctx, "every pod runs", s.finalSizes, s.allPodsRun); err != nil {
		return err
	}
	s.countsWrites = true
	s.world.Kube.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Template.Labels = map[string]string{"tier": "gold"}
	})
	return s.requireWithin(ctx, "drifted nodes are replaced", s.finalSizes, s.areClaimsUpdated)
}

func (s *sim) playConsolidation(ctx context.Context) error {
	if err := s.requireWithin(ctx, "every pod runs", s.finalSizes, s.allPodsRun); err != nil {
		return err
	}
	s.countsWrites = true
	s.finalSizes = replicaCounts{"web": 1, "batch": 1}
	consolidated := func() bool { return s.allPodsRun() && len(s.listObjects(cluster.NodeClaims)) == 1 }
	return s.requireWithin(ctx, "the pods that remain are on one node", s.finalSizes, consolidated)
}

// areClaimsUpdated reports whether every NodeClaim has the new label of its NodePool.
func (s *sim) areClaimsUpdated() bool {
	claims, err := cluster.List[*karpenter.NodeClaim](context.Background(), s.world.Kube, cluster.NodeClaims)
	return err == nil && len(claims) > 0 && s.allPodsRun() &&
		!slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool { return c.Labels["tier"] != "gold" })
}
