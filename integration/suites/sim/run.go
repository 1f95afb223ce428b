package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// faultDuration is the length of the fault phase.
	faultDuration = 6 * time.Minute
	// recoveryDuration is the time to recover: one launch that times out and a second one.
	recoveryDuration = 25 * time.Minute
)

// Report is the result of a run.
type Report struct {
	Seed       int64
	Hash       uint64
	Calls      int
	Violations []Violation
	// Faults counts the injected faults by kind.
	Faults map[string]int
	// LastWrites are the last writes before the first violation or the end.
	LastWrites []string
	// target is the make target that repeats the seed; "" for a scenario.
	target string
	// Attacker is the attacker of a hostile seed.
	Attacker string
}

// FailureText returns the violations and the command that repeats the run.
func (r Report) FailureText() string {
	var b strings.Builder
	if r.target != "" {
		fmt.Fprintf(&b, "seed %d broke %d promises; repeat it with: make %s SEED=%d\n", r.Seed, len(r.Violations), r.target, r.Seed)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	tail := r.LastWrites[max(0, len(r.LastWrites)-60):]
	fmt.Fprintf(&b, "the last %d writes:\n  %s\n", len(tail), strings.Join(tail, "\n  "))
	return b.String()
}

// sim is one run.
type sim struct {
	*engine
	checker *checker
	chaos   *chaos
	faults  map[string]int
	// finalSizes are the replicas of each Deployment in the recovery phase.
	finalSizes replicaCounts
	// countsWrites is whether writes count as crash points.
	countsWrites bool
	// settings are the NodePool settings and attacks of this seed.
	settings seedSettings
	// features are the features of this seed that are off by default.
	features seedFeatures
	// versions is nil if all services run the same version.
	versions *versionPlan
	// clocks are those of the actors' machines.
	clocks *machineClocks
	// attacker is nil except in hostile seeds.
	attacker *attacker
	// pods are those of listPods, as of podsVersion.
	pods        []*corev1.Pod
	podsVersion int64
	// statefulSetVersion is the version that reconcileStatefulSet has handled.
	statefulSetVersion int64
}

// Run runs the simulator with one seed.
func Run(seed int64) (Report, error) { return run(seed, nil) }

func run(seed int64, versions *versionPlan) (Report, error) {
	ctx := context.Background()
	s := &sim{engine: newEngine(seed), faults: map[string]int{}, finalSizes: replicaCounts{"web": 6, "batch": 8, "kept": 1, "timed": 1}, versions: versions, clocks: newMachineClocks(seed)}
	s.settings = newSeedSettings(seed)
	if versions == nil {
		s.features = newSeedFeatures(seed)
	} else {
		s.settings.nodeParts = watcher.NodePartSizes{} // The version before reads no parts.
	}
	if s.features.devices {
		s.settings.poolPrice, s.settings.clusterPrice = nil, nil // The limits are too low for a node with GPUs.
		s.finalSizes[deviceWorkload] = 2
	}
	if s.features.reservation {
		s.finalSizes[bookedWorkload] = bookedCount
	}
	if s.features.terminateFirst && len(s.settings.driftTimes) == 0 {
		s.settings.driftTimes = []time.Duration{90 * time.Second}
	}
	workload := memworkload.Typical("", nil)
	workload.ForgetAfter, workload.PublishAfter = time.Minute, s.features.publishDelay
	options := embedded.Options{
		Verify: true,
		Seed:   seed, Region: "us-west-2", Families: instanceFamilies, Replicas: 2, Tap: s.interceptCall, CacheDelay: 200 * time.Millisecond, Workload: &workload, PriceLimit: s.settings.clusterPrice, NodeParts: s.settings.nodeParts, WrapPorts: s.wrapPorts, Skew: s.clocks.drawSkew,
		Observe: func(actor string, m message, began time.Time, err error) {
			s.checker.checkHandled(actor, m, began, err)
		},
	}
	if err := s.features.applyTo(&options); err != nil {
		return Report{}, err
	}
	world, err := embedded.New(options)
	if err != nil {
		return Report{}, err
	}
	s.world = world
	pool := newNodePool("default", 18, 9)
	if s.random.IntN(2) == 0 {
		// Only interruptions force the end of a drain.
		pool.Spec.Template.Spec.TerminationGracePeriod = nil
	}
	s.settings.applyTo(pool)
	class, pools := newNodeClass(world), map[string]corev1.ResourceList{"default": corev1.ResourceList(pool.Spec.Limits)}
	objects := s.features.featureObjects(world, pool, class)
	for _, o := range objects {
		if other, ok := o.(*karpenter.NodePool); ok {
			s.settings.applyTo(other)
			pools[other.Name] = corev1.ResourceList(other.Spec.Limits)
		}
	}
	s.checker = newChecker(world, pools)
	s.checker.features, s.checker.clocks = s.features, s.clocks
	s.checker.limits.strict = s.settings.strictLimits
	s.checker.disruptions.maxNodes = s.settings.maxNodes()
	s.checker.rate = newEvictionRate(s.settings.evictionsPerHour)
	s.checker.prices = priceLimits{pool: s.settings.poolPrice, cluster: s.settings.clusterPrice}
	s.checker.prices.readPrices(s.checker)
	s.onCall = func(call embedded.Call, err error) {
		s.checker.checkCall(call, err)
		s.corruptAfterLaunch(call, err)
	}
	s.chaos = newChaos(s, seed)
	s.onRestart = s.chaos.hangWatchesOf
	defer s.endTasks()
	if err := world.Apply(ctx, append(append(s.workloadObjects(), class, pool), objects...)...); err != nil {
		return Report{}, err
	}
	scaleStatefulSet(world, 1)
	if err := s.playPhases(ctx); err != nil {
		return Report{}, err
	}
	report := s.makeReport(seed)
	report.target = "sim"
	if versions != nil {
		report.target = "upgrades"
	}
	return report, nil
}

// workloadObjects returns the Deployments, PodDisruptionBudgets and the StatefulSet. Some pods must not be
// disrupted.
func (s *sim) workloadObjects() []cluster.Object {
	atLeast, atMost := intstr.FromInt(s.random.IntN(6)), intstr.FromInt(1+s.random.IntN(3))
	return []cluster.Object{
		newDeployment("web", 900), newDeployment("batch", 400), podDisruptionBudget("web", &atLeast, nil), podDisruptionBudget("batch", nil, &atMost),
		protectedDeployment(newDeployment("kept", 300), "true"), protectedDeployment(newDeployment("timed", 300), []string{"1m", "3m"}[s.random.IntN(2)]),
		newStatefulSet(newDeployment(statefulSetName, 300)),
	}
}

// playPhases runs the fault phase, the recovery phase, and the removal of all pods.
func (s *sim) playPhases(ctx context.Context) error {
	if err := s.agePods(ctx); err != nil {
		return err
	}
	s.chooseFault = s.chaos.drawCallFault
	if err := s.advanceUntil(ctx, faultDuration, func() bool { return len(s.checker.violations) > 0 }); err != nil {
		return err
	}
	s.chaos.stopFaults()
	s.checker.disruptions.faultsEnd = s.world.Now()
	if len(s.checker.violations) > 0 {
		return nil
	}
	settled := func() bool { return s.allPodsRun() && s.checker.areDrainsComplete() }
	if err := s.requireWithin(ctx, "every pod runs, and every drain completes or names a blocking pod", s.finalSizes, settled); err != nil {
		return err
	}
	s.chaos.deleteProtectedClaims()
	outlasted := s.world.Now().Add(4 * time.Minute)
	drained := func() bool { return s.world.Now().After(outlasted) && s.checker.areDrainsComplete() }
	if err := s.requireWithin(ctx, "every drain completes or names a blocking pod", s.finalSizes, drained); err != nil {
		return err
	}
	return s.requireWithin(ctx, "no pod, node or instance is left", s.finalSizes.zeroCounts(), s.isEmpty)
}

// requireWithin scales the workload and reports a violation if done is not true within recoveryDuration.
func (s *sim) requireWithin(ctx context.Context, promise string, size replicaCounts, done func() bool) error {
	if len(s.checker.violations) > 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(size)) {
		if err := scaleDeployment(s.world, name, size[name]); err != nil {
			return err
		}
	}
	scaleStatefulSet(s.world, int32(min(1, size.sum())))
	err := s.advanceUntil(ctx, recoveryDuration, func() bool { return done() && len(s.chaos.endings) == 0 || len(s.checker.violations) > 0 })
	if err == nil && !done() && len(s.checker.violations) == 0 {
		s.checker.reportViolation(promise, "not within %s: %s", recoveryDuration, s.describeState())
	}
	return err
}

// advanceUntil advances the time until done returns true or the limit is over.
func (s *sim) advanceUntil(ctx context.Context, limit time.Duration, done func() bool) error {
	end := s.world.Now().Add(limit)
	for now := s.world.Now(); now.Before(end); now = s.nextTime() {
		s.chaos.injectFaults(now)
		s.applyDrift()
		s.changeVersions()
		s.forgeRequest()
		if s.attacker != nil {
			s.attacker.attack(now)
		}
		if err := s.reconcileStatefulSet(); err != nil {
			return err
		}
		if err := s.world.Advance(ctx, now); err != nil {
			return err
		}
		s.runReadyTasks(ctx)
		s.checker.checkAll()
		for _, p := range s.panics {
			s.checker.reportViolation("no service panics", "%s", p)
		}
		if done() {
			return nil
		}
	}
	return nil
}

// listPods returns all pods, which callers must not change. They are read again only after a write.
func (s *sim) listPods() []*corev1.Pod {
	if version := s.world.Kube.Version(); s.podsVersion != version {
		s.podsVersion, s.pods = version, cluster.CastAll[*corev1.Pod](s.world.Kube.ListStored(cluster.Pods))
	}
	return s.pods
}

// allPodsRun reports whether each pod runs, or is pending because of a limit that the plan names and that is
// reached.
func (s *sim) allPodsRun() bool {
	accounted := 0
	var waiting []*corev1.Pod
	for _, pod := range s.listPods() {
		switch {
		case pod.DeletionTimestamp != nil:
		case pod.Status.Phase == corev1.PodRunning:
			accounted++
		default:
			waiting = append(waiting, pod)
		}
	}
	wanted := s.finalSizes.sum() + len(s.listObjects(cluster.StatefulSets))
	if accounted < wanted && len(waiting) > 0 {
		accounted += s.checker.countLimitedPods(waiting)
	}
	return accounted >= wanted
}

// isEmpty reports whether no pod, node, NodeClaim or instance exists.
func (s *sim) isEmpty() bool {
	for _, r := range s.world.Cloud.Records() {
		if r.Gone.IsZero() {
			return false
		}
	}
	return len(s.listPods()) == 0 && len(s.listObjects(cluster.NodeClaims)) == 0 && len(s.listObjects(cluster.Nodes)) == 0
}

// listObjects returns all objects of a kind, which callers must not change.
func (s *sim) listObjects(kind cluster.Kind) []cluster.Object {
	return s.world.Kube.ListStored(kind)
}

// describeState returns the state of the cluster for the report of a failure.
func (s *sim) describeState() string {
	var b strings.Builder
	for _, pod := range s.listPods() {
		if pod.Status.Phase != corev1.PodRunning {
			fmt.Fprintf(&b, "pod %s %s on %q; ", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
	}
	for _, o := range s.listObjects(cluster.NodeClaims) {
		claim := o.(*karpenter.NodeClaim)
		fmt.Fprintf(&b, "claim %s created %s provider %q deleting %v %v; ", claim.Name, claim.CreationTimestamp.Format("15:04:05"),
			claim.Status.ProviderID, claim.DeletionTimestamp != nil, claim.Annotations)
	}
	for _, o := range s.listObjects(cluster.Nodes) {
		fmt.Fprintf(&b, "node %s deleting %v; ", o.GetName(), o.GetDeletionTimestamp() != nil)
	}
	for _, o := range s.listObjects(cluster.ConfigMaps) {
		if o.GetNamespace() == embedded.Namespace {
			fmt.Fprintf(&b, "%s %v; ", o.GetName(), o.(*corev1.ConfigMap).Data)
		}
	}
	for _, a := range s.world.Actors {
		if a.Err != nil {
			fmt.Fprintf(&b, "%s: %v; ", a.Name, a.Err)
		}
	}
	return b.String()
}

func (s *sim) makeReport(seed int64) Report {
	for kind, n := range s.world.Broker.Counts() {
		s.faults["queue "+string(kind)] += n
	}
	for kind, n := range s.world.Kube.InjectedFaults() {
		s.faults["api "+kind] += n
	}
	for kind, n := range s.world.Cloud.InjectedFaults() {
		s.faults["cloud "+kind] += n
	}
	s.clocks.countInto(s.faults)
	for kind, n := range s.world.Blobs.Counts() {
		s.faults["blob "+string(kind)] += n
	}
	if err := s.world.Broker.CheckConservation(); err != nil {
		s.checker.reportViolation("messages are conserved", "%v", err)
	}
	for kind, n := range s.checker.occurrences {
		s.faults[kind] += n
	}
	s.features.countInto(s.faults)
	return Report{Seed: seed, Hash: s.trace.Sum64(), Calls: s.calls, Violations: s.checker.violations, Faults: s.faults, LastWrites: s.lastWrites}
}
