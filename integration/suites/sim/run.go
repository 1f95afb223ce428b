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
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// faultPhase is how long things go wrong.
	faultPhase = 6 * time.Minute
	// healPhase is how long everything may take to come right: a launch that has
	// to time out, and then another.
	healPhase = 25 * time.Minute
)

// Report is what a run found.
type Report struct {
	Seed       int64
	Hash       uint64
	Calls      int
	Violations []Violation
	// Faults counts what went wrong, by kind: proof that it did.
	Faults map[string]int
	// Last are the latest writes before the first violation or the end.
	Last []string
}

// Failed says how to see the run again.
func (r Report) Failed() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d broke %d promises; run it again with: make sim SEED=%d\n", r.Seed, len(r.Violations), r.Seed)
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "  %s\n", v)
	}
	tail := r.Last[max(0, len(r.Last)-60):]
	fmt.Fprintf(&b, "the last %d writes:\n  %s\n", len(tail), strings.Join(tail, "\n  "))
	return b.String()
}

// sim is one run.
type sim struct {
	*engine
	checker *checker
	chaos   *chaos
	faults  map[string]int
	// full are the pods that run in the end.
	full sizes
	// counts is whether writes of a story are points by now.
	counts bool
	// asks is what people ask for in this seed.
	asks variety
}

// Run plays one seed.
func Run(seed int64) (Report, error) {
	ctx := context.Background()
	s := &sim{engine: newEngine(seed), faults: map[string]int{}, full: sizes{"web": 6, "batch": 8, "kept": 1, "timed": 1}}
	s.asks = newVariety(seed)
	workload := memworkload.Typical("", nil)
	workload.ForgetAfter = time.Minute
	world, err := embedded.New(embedded.Options{
		Seed: seed, Region: "us-west-2", Families: families, Replicas: 2, Tap: s.tap, CacheDelay: 200 * time.Millisecond, Workload: &workload, PriceLimit: s.asks.cluster,
		Observe: func(actor string, m message, began time.Time, err error) { s.checker.handled(actor, m, began, err) },
	})
	if err != nil {
		return Report{}, err
	}
	s.world = world
	pool := nodePool("default", 18, 9)
	if s.dice.IntN(2) == 0 {
		// Nothing ends a drain by force but what AWS says.
		pool.Spec.Template.Spec.TerminationGracePeriod = nil
	}
	s.asks.ask(pool)
	s.checker = newChecker(world, map[string]corev1.ResourceList{"default": corev1.ResourceList(pool.Spec.Limits)})
	s.checker.limits.strict = s.asks.strict
	s.checker.sagas.allowed = s.asks.allowed()
	s.checker.rate = newRate(s.asks.evictions)
	s.checker.money = money{pool: s.asks.pool, cluster: s.asks.cluster}
	s.checker.money.prices(s.checker)
	s.observe = func(call embedded.Call, err error) {
		s.checker.called(call, err)
		s.spoil(call, err)
	}
	s.chaos = newChaos(s)
	s.restarted = s.chaos.mute
	defer s.close()
	if err := world.Apply(ctx, append(s.workload(), nodeClass(world), pool)...); err != nil {
		return Report{}, err
	}
	scaleNamed(world, 1)
	if err := s.play(ctx); err != nil {
		return Report{}, err
	}
	return s.report(seed), nil
}

// workload is what people run in the cluster: pods under budgets, pods that must
// not be disrupted, and one whose name is used again and again.
func (s *sim) workload() []cluster.Object {
	atLeast, atMost := intstr.FromInt(s.dice.IntN(6)), intstr.FromInt(1+s.dice.IntN(3))
	return []cluster.Object{
		deployment("web", 900), deployment("batch", 400), budget("web", &atLeast, nil), budget("batch", nil, &atMost),
		kept(deployment("kept", 300), "true"), kept(deployment("timed", 300), []string{"1m", "3m"}[s.dice.IntN(2)]),
		statefulSetOf(deployment(named, 300)),
	}
}

// play runs the fault phase, then the liveness phase, then the end.
func (s *sim) play(ctx context.Context) error {
	if err := s.age(ctx); err != nil {
		return err
	}
	s.strike = s.chaos.strike
	if err := s.until(ctx, faultPhase, func() bool { return len(s.checker.found) > 0 }); err != nil {
		return err
	}
	s.chaos.heal()
	s.checker.sagas.healed = s.world.Now()
	if len(s.checker.found) > 0 {
		return nil
	}
	settled := func() bool { return s.allRunning() && s.checker.drainsEnd() }
	if err := s.settles(ctx, "every pod runs, and every drain ends or says why not", s.full, settled); err != nil {
		return err
	}
	s.chaos.deleteKept()
	outlasted := s.world.Now().Add(4 * time.Minute)
	drained := func() bool { return s.world.Now().After(outlasted) && s.checker.drainsEnd() }
	if err := s.settles(ctx, "every drain ends or says why not", s.full, drained); err != nil {
		return err
	}
	return s.settles(ctx, "nothing is left", s.full.none(), s.empty)
}

// settles sets the workload and demands that the world comes to agree.
func (s *sim) settles(ctx context.Context, promise string, size sizes, done func() bool) error {
	if len(s.checker.found) > 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(size)) {
		if err := scale(s.world, name, size[name]); err != nil {
			return err
		}
	}
	scaleNamed(s.world, int32(min(1, size.sum())))
	err := s.until(ctx, healPhase, func() bool { return done() || len(s.checker.found) > 0 })
	if err == nil && !done() && len(s.checker.found) == 0 {
		s.checker.violate(promise, "not within %s after the faults stopped: %s", healPhase, s.describe())
	}
	return err
}

// until lets time pass.
func (s *sim) until(ctx context.Context, limit time.Duration, done func() bool) error {
	end := s.world.Now().Add(limit)
	for now := s.world.Now(); now.Before(end); now = s.next() {
		s.chaos.strikeWorld(now)
		s.vary()
		s.forge()
		if err := s.keep(); err != nil {
			return err
		}
		if err := s.world.Advance(ctx, now); err != nil {
			return err
		}
		s.moments(ctx)
		s.checker.look()
		for _, p := range s.panics {
			s.checker.violate("no service panics", "%s", p)
		}
		if done() {
			return nil
		}
	}
	return nil
}

func (s *sim) pods() []*corev1.Pod {
	objects, _ := s.world.Kube.World("checker").List(context.Background(), cluster.Pods, "")
	return cluster.Cast[*corev1.Pod](objects)
}

// allRunning: each wanted pod runs, or waits for a reason that was stated and
// that is true.
func (s *sim) allRunning() bool {
	accounted := 0
	var waiting []*corev1.Pod
	for _, pod := range s.pods() {
		switch {
		case pod.DeletionTimestamp != nil:
		case pod.Status.Phase == corev1.PodRunning:
			accounted++
		default:
			waiting = append(waiting, pod)
		}
	}
	wanted := s.full.sum() + len(s.list(cluster.StatefulSets))
	if accounted < wanted && len(waiting) > 0 {
		accounted += s.checker.stated(waiting)
	}
	return accounted >= wanted
}

// empty: no pod, no node, no claim and no instance.
func (s *sim) empty() bool {
	for _, r := range s.world.Cloud.Records() {
		if r.Gone.IsZero() {
			return false
		}
	}
	return len(s.pods()) == 0 && len(s.list(cluster.NodeClaims)) == 0 && len(s.list(cluster.Nodes)) == 0
}

func (s *sim) list(kind cluster.Kind) []cluster.Object {
	objects, _ := s.world.Kube.World("checker").List(context.Background(), kind, "")
	return objects
}

// describe says what the world looks like, for a failure's report.
func (s *sim) describe() string {
	var b strings.Builder
	for _, pod := range s.pods() {
		if pod.Status.Phase != corev1.PodRunning {
			fmt.Fprintf(&b, "pod %s %s on %q; ", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
	}
	for _, o := range s.list(cluster.NodeClaims) {
		claim := o.(*karpenter.NodeClaim)
		fmt.Fprintf(&b, "claim %s created %s provider %q deleting %v %v; ", claim.Name, claim.CreationTimestamp.Format("15:04:05"),
			claim.Status.ProviderID, claim.DeletionTimestamp != nil, claim.Annotations)
	}
	for _, o := range s.list(cluster.Nodes) {
		fmt.Fprintf(&b, "node %s deleting %v; ", o.GetName(), o.GetDeletionTimestamp() != nil)
	}
	for _, o := range s.list(cluster.ConfigMaps) {
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

func (s *sim) report(seed int64) Report {
	for kind, n := range s.world.Broker.Counts() {
		s.faults["queue "+string(kind)] += n
	}
	for kind, n := range s.world.Kube.Struck() {
		s.faults["api "+kind] += n
	}
	for kind, n := range s.world.Blobs.Counts() {
		s.faults["blob "+string(kind)] += n
	}
	if err := s.world.Broker.Conserved(); err != nil {
		s.checker.violate("messages are conserved", "%v", err)
	}
	for kind, n := range s.checker.reached {
		s.faults[kind] += n
	}
	return Report{Seed: seed, Hash: s.trace.Sum64(), Calls: s.calls, Violations: s.checker.found, Faults: s.faults, Last: s.lines}
}
