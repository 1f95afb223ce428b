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

// CrashPoint is one point of a scenario at which a service crashes: before or after the n-th write of all
// services. The point after the write that deletes a message is after the acknowledgement.
type CrashPoint struct {
	Write int
	After bool
}

// CrashResult is the result of a scenario with a crash.
type CrashResult struct {
	Report
	// Actor and Verb are the service and the write at which it crashed.
	Actor, Verb string
	Crashed     bool
	// Writes are all writes of the scenario in their order, as "lifecycle-0 cluster.update NodeClaim". The last word
	// is the kind of the object or the name of the queue.
	Writes []string
}

// CrashScenario is a sequence of events without any fault but one crash.
type CrashScenario struct {
	Name  string
	sizes replicaCounts
	// millicores are the CPU requests of a pod, by Deployment.
	millicores map[string]int64
	// reserved is the number of instances in a capacity reservation, which is then all that the NodePool may use.
	reserved int
	// repairs turns node repair on.
	repairs bool
	play    func(*sim, context.Context) error
}

// Interruption is a scenario in which pods and nodes start, EC2 interrupts one node, and all pods are removed.
var Interruption = CrashScenario{
	Name: "interruption", sizes: replicaCounts{"web": 6, "batch": 8}, millicores: map[string]int64{"web": 900, "batch": 400}, play: (*sim).playInterruption,
}

// Drift is a scenario in which a node with pods drifts and is replaced. Crash points begin at the drift.
var Drift = CrashScenario{Name: "replaced", sizes: replicaCounts{"web": 2}, millicores: map[string]int64{"web": 900}, play: (*sim).playDrift}

// TerminateFirst is a scenario in which a node in a full capacity reservation drifts. It is removed before its
// replacement is launched, which uses its place. Crash points begin at the drift.
var TerminateFirst = CrashScenario{
	Name: "terminated first", sizes: replicaCounts{"web": 2}, millicores: map[string]int64{"web": 900}, reserved: 1, play: (*sim).playDrift,
}

// Reboot is a scenario in which an unhealthy node is rebooted. Crash points begin when it is unhealthy.
var Reboot = CrashScenario{Name: "rebooted", sizes: replicaCounts{"web": 2}, millicores: map[string]int64{"web": 900}, repairs: true, play: (*sim).playReboot}

// PlayScenario runs a scenario and crashes one service at one point. The zero point crashes none.
func PlayScenario(tale CrashScenario, point CrashPoint) (CrashResult, error) {
	const seed = 1
	ctx := context.Background()
	s := &sim{engine: newEngine(seed), faults: map[string]int{}, finalSizes: tale.sizes}
	workload := memworkload.Typical("", nil)
	workload.ForgetAfter = time.Minute
	options := embedded.Options{
		Seed: seed, Region: "us-west-2", Families: instanceFamilies, Tap: s.interceptCall, CacheDelay: 50 * time.Millisecond, Workload: &workload,
		Gates: planning.Gates{ReservedCapacity: tale.reserved > 0, TerminateFirstDrift: tale.reserved > 0},
		Observe: func(actor string, m message, began time.Time, err error) {
			s.checker.checkHandled(actor, m, began, err)
		},
	}
	if err := (seedFeatures{repairs: tale.repairs}).setRepair(&options); err != nil {
		return CrashResult{}, err
	}
	world, err := embedded.New(options)
	if err != nil {
		return CrashResult{}, err
	}
	s.world = world
	pool, class := newNodePool("default", 16, 8), newNodeClass(world)
	if tale.reserved > 0 {
		tale.reserve(world, pool, class)
	}
	s.checker = newChecker(world, map[string]corev1.ResourceList{"default": corev1.ResourceList(pool.Spec.Limits)})
	s.onCall = s.checker.checkCall
	s.chaos = &chaos{sim: s, isStopped: true}
	defer s.endTasks()
	var death CrashResult
	s.chooseFault = s.crashAt(point, &death)
	objects := []cluster.Object{class, pool}
	for _, name := range slices.Sorted(maps.Keys(tale.millicores)) {
		objects = append(objects, newDeployment(name, tale.millicores[name]))
	}
	if err := world.Apply(ctx, objects...); err != nil {
		return CrashResult{}, err
	}
	err = tale.play(s, ctx)
	death.Report = s.makeReport(seed)
	return death, err
}

// reserve adds the capacity reservation, and lets the NodePool and the class use nothing else.
func (c CrashScenario) reserve(w *embedded.EmbeddedCluster, pool *karpenter.NodePool, class *karpenter.EC2NodeClass) {
	tags := map[string]string{"team": "web"}
	w.Cloud.AddReservation(cloud.Reservation{InstanceType: "m6g.large", Zone: w.AWS.Subnets[0].Zone, Available: c.reserved, Tags: tags})
	class.Spec.CapacityReservationSelectorTerms = []karpenter.CapacityReservationSelectorTerm{{Tags: tags}}
	for i := range pool.Spec.Template.Spec.Requirements {
		if r := &pool.Spec.Template.Spec.Requirements[i]; r.Key == karpenter.CapacityTypeLabelKey {
			r.Values = []string{karpenter.CapacityTypeReserved}
		}
	}
}

// crashAt returns a chooseFault that crashes at one write only.
func (s *sim) crashAt(point CrashPoint, death *CrashResult) func(embedded.Call, int, callPhase) callFault {
	leases, number := map[string]int{}, map[int]int{}
	return func(call embedded.Call, serial int, m callPhase) callFault {
		if m == beforeCall && call.Writes && s.countsWrites && (!isLeaseRenewal(call) || leases[call.Actor] < maxLeaseWrites) {
			death.Writes = append(death.Writes, nameWrite(call))
			number[serial] = len(death.Writes)
			if isLeaseRenewal(call) {
				leases[call.Actor]++
			}
		}
		if n, counted := number[serial]; death.Crashed || !counted || point.Write != n || point.After != (m == afterCall) {
			return callFault{}
		}
		death.Crashed, death.Actor, death.Verb = true, call.Actor, call.Port+"."+call.Verb
		return callFault{crash: true}
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

// areClaimsUpdated reports whether every NodeClaim has the new label of its NodePool.
func (s *sim) areClaimsUpdated() bool {
	claims, err := cluster.List[*karpenter.NodeClaim](context.Background(), s.world.Kube, cluster.NodeClaims)
	return err == nil && len(claims) > 0 && s.allPodsRun() &&
		!slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool { return c.Labels["tier"] != "gold" })
}
