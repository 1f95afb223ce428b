package sim

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// attackDuration is how long the attacker acts.
	attackDuration = time.Minute
	// hostileBudget is how many nodes the NodePool's budget lets disruption remove at once.
	hostileBudget = 2
)

// RunHostile runs one seed in which a service or a tenant is an attacker. A small cluster starts, the attacker acts for a
// minute, then it is removed, and the cluster must recover.
func RunHostile(seed int64) (Report, error) {
	return runHostile(seed, Attackers[uint64(seed)%uint64(len(Attackers))], nil)
}

// runHostile runs a seed with this attacker. plant breaks a promise in the middle of the attack, so that its checker can be
// tested; nil breaks none.
func runHostile(seed int64, name string, plant func(*attacker)) (Report, error) {
	ctx := context.Background()
	s := &sim{engine: newEngine(seed), faults: map[string]int{}, finalSizes: replicaCounts{"web": 5, "batch": 3}}
	a, err := newAttacker(s, name, seed)
	if err != nil {
		return Report{}, fmt.Errorf("reading the rights of %s: %w", name, err)
	}
	s.attacker, a.plant = a, plant
	workload := memworkload.Typical("", nil)
	workload.ForgetAfter = time.Minute
	s.world, err = embedded.New(embedded.Options{
		Verify: true,
		Seed:   seed, Region: hostileRegion, Cluster: hostileCluster, Families: []string{"t4g", "m6g"}, Tap: s.interceptCall, CacheDelay: 200 * time.Millisecond, Workload: &workload,
		Observe: func(actor string, m message, began time.Time, err error) {
			if s.checker.finishedReceipts[m.Receipt] = true; a.sent[messageKey(m.Body)] == nil {
				s.checker.checkHandled(actor, m, began, err)
			}
			a.observe(actor, m, err)
			a.checkCrash(actor, err)
		},
		Log: func(line host.LogLine) { a.recordDisposition(line) },
	})
	if err != nil {
		return Report{}, err
	}
	pool, class := newNodePool("default", 20, 10), newNodeClass(s.world)
	pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: strconv.Itoa(hostileBudget)}}
	s.checker = newChecker(s.world, map[string]corev1.ResourceList{"default": hostileLimits(name, pool)})
	s.checker.disruptions.maxNodes = map[string]int{"Empty": hostileBudget, "Underutilized": hostileBudget, "Drifted": hostileBudget, "Unhealthy": hostileBudget}
	s.checker.hostile = newHostileChecker(a)
	s.onCall = s.checker.checkCall
	s.chaos = &chaos{sim: s, isStopped: true}
	defer s.endTasks()
	if err := s.playHostile(ctx, []cluster.Object{class, pool}); err != nil {
		return Report{}, err
	}
	report := s.makeReport(seed)
	report.target = "hostile"
	report.Attacker, report.Violations = name, s.checker.hostile.dropExceptions(report.Violations)
	return report, nil
}

// hostileLimits returns the limits that the checker requires. A node that counts as gone wrongly runs in addition to
// its replacement until its instance is terminated, so interruption and catalog can exceed the limits by that many nodes.
func hostileLimits(attacker string, pool *karpenter.NodePool) corev1.ResourceList {
	limits := corev1.ResourceList(pool.Spec.Limits).DeepCopy()
	if attacker == "interruption" || attacker == "catalog" {
		const cpu = 4 // of the largest instance type of the NodePool
		limits[corev1.ResourceCPU] = *resource.NewQuantity(limits.Cpu().Value()+maxUnproven*cpu, resource.DecimalSI)
		nodes := pool.Spec.Limits[karpenter.ResourceNodes]
		limits[karpenter.ResourceNodes] = *resource.NewQuantity(nodes.Value()+maxUnproven, resource.DecimalSI)
	}
	return limits
}

// playHostile starts the cluster, lets the attacker act, removes it, and requires that the cluster recovers.
func (s *sim) playHostile(ctx context.Context, manifests []cluster.Object) error {
	a := s.attacker
	if err := s.world.Apply(ctx, append(hostileWorkload(), manifests...)...); err != nil {
		return err
	}
	s.world.Kube.SeedObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenantNamespace}})
	if err := a.startForeignInstances(); err != nil {
		return fmt.Errorf("starting the instances of the other cluster: %w", err)
	}
	if err := s.requireWithin(ctx, "pods run before the attack", s.finalSizes, s.allPodsRun); err != nil {
		return err
	}
	a.ends = s.world.Now().Add(attackDuration)
	a.checker.hostile.began = s.world.Now()
	s.chooseFault = noCallFault
	// A new pod and the loss of a pod show whether pods of others are planned meanwhile.
	if err := scaleDeployment(s.world, "web", 6); err != nil {
		return err
	}
	s.finalSizes["web"] = 6
	if err := s.advanceUntil(ctx, attackDuration, func() bool { return false }); err != nil {
		return err
	}
	a.endAttack(manifests)
	recovered := func() bool { return s.hasRecovered(isUnlaunched) }
	if err := s.advanceUntil(ctx, maxHostileRecovery, recovered); err != nil {
		return err
	}
	s.checker.hostile.checkRecovery(recovered())
	complete := func() bool { return s.hasRecovered(func(*karpenter.NodeClaim) bool { return false }) }
	if err := s.advanceUntil(ctx, unlaunchedBound-s.world.Now().Sub(s.checker.hostile.ended), complete); err != nil {
		return err
	}
	if !complete() {
		s.checker.reportViolation(promiseRecovery, "not completely within %s: %s", unlaunchedBound, s.checker.hostile.describeState())
	}
	return nil
}

// isUnlaunched reports whether a NodeClaim is being deleted and never had an instance.
func isUnlaunched(claim *karpenter.NodeClaim) bool {
	return claim.DeletionTimestamp != nil && claim.Status.ProviderID == ""
}

func noCallFault(embedded.Call, int, callPhase) callFault { return callFault{} }

// hostileWorkload returns five pods that need a node each, and three small ones.
func hostileWorkload() []cluster.Object {
	web, batch := newDeployment("web", 700), newDeployment("batch", 300)
	web.Spec.Replicas, batch.Spec.Replicas = new(int32(5)), new(int32(3))
	apart := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}
	web.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{apart}}}
	return []cluster.Object{web, batch}
}

// hasRecovered reports whether all pods of other tenants run, no NodeClaim is being deleted or waits for its instance,
// and every instance of the cluster has a NodeClaim. NodeClaims for which ignore is true do not count.
func (s *sim) hasRecovered(ignore func(*karpenter.NodeClaim) bool) bool {
	running := replicaCounts{}
	for _, pod := range s.listPods() {
		if pod.Namespace == tenantNamespace {
			return false
		}
		if pod.DeletionTimestamp == nil {
			running[pod.Labels["app"]]++
		}
		if pod.Status.Phase != corev1.PodRunning {
			return false
		}
	}
	owned := map[string]bool{}
	for _, o := range s.listObjects(cluster.NodeClaims) {
		claim := o.(*karpenter.NodeClaim)
		if ignore(claim) {
			continue
		}
		if claim.DeletionTimestamp != nil || !claim.Status.Conditions.IsTrue("Initialized") {
			return false
		}
		owned[claim.Status.ProviderID] = true
	}
	for _, r := range s.world.Cloud.Records() {
		if !isForeign(r) && r.Gone.IsZero() && !owned["aws:///"+r.Zone+"/"+r.ID] {
			return false
		}
	}
	return maps.Equal(running, s.finalSizes)
}
