package karpenterbaseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	karpoptions "sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"

	"github.com/joist-autoscaler/joist/integration/environment/meter"
)

// Options configure the scheduler.
type Options struct {
	// Timeout ends solving and keeps the pods placed so far; 0 is no limit. In production
	// it is a minute.
	Timeout time.Duration
	// Concurrency is the number of the scheduler's workers. In production it is the number
	// of CPUs that the controller requests.
	Concurrency int
	// ReservedFallback solves as disruption does: pods that only a full reservation of a NodePool fits may use other
	// NodePools.
	ReservedFallback bool
	// CreditReservation is the id of a reservation that has one more free instance.
	CreditReservation string
	// Rounds is the number of commands after which Consolidate ends; 0 is no limit.
	Rounds int
}

// quiet drops events.
type quiet struct{}

func (quiet) Publish(...events.Event) {}

// run is one planning of a scenario.
type run struct {
	scenario *Scenario
	options  Options
	types    []*cloudprovider.InstanceType
	store    *store
	cluster  *state.Cluster
	// pods passed the validation, refused did not.
	pods    []*corev1.Pod
	refused map[*corev1.Pod]error
}

// Plan plans the scenario. It modifies the scenario's pods, so plan a scenario only once.
func Plan(ctx context.Context, s *Scenario, o Options) (*Result, error) {
	ctx = quietly(injection.WithControllerName(ctx, "provisioner"), o)
	began := time.Now()
	r := &run{scenario: s, options: o, types: s.instanceTypes(), refused: map[*corev1.Pod]error{}}
	scheduler, err := r.setUp(ctx)
	if err != nil {
		return nil, fmt.Errorf("setting up Karpenter's scheduler for %s: %w", s.Name, err)
	}
	setup := time.Since(began)
	results, effort, err := r.solve(ctx, scheduler)
	if err != nil {
		return nil, fmt.Errorf("solving %s with Karpenter's scheduler: %w", s.Name, err)
	}
	effort.SetupWallS = setup.Seconds()
	return r.result(ctx, results, effort)
}

// quietly returns a context with production's settings in which upstream logs nothing.
func quietly(ctx context.Context, o Options) context.Context {
	log.SetLogger(logr.Discard())
	return karpoptions.ToContext(log.IntoContext(ctx, logr.Discard()), &karpoptions.Options{
		CPURequests: int64(o.Concurrency) * 1000, PreferencePolicy: karpoptions.PreferencePolicyRespect,
		MinValuesPolicy: karpoptions.MinValuesPolicyStrict, IgnoreDRARequests: true,
		FeatureGates: karpoptions.FeatureGates{ReservedCapacity: true},
	})
}

// setUp does what the provisioner does before it solves.
func (r *run) setUp(ctx context.Context) (*scheduling.Scheduler, error) {
	var err error
	if r.store, err = newStore(r.scenario, r.types); err != nil {
		return nil, err
	}
	if r.cluster, err = newCluster(ctx, r.scenario, r.store); err != nil {
		return nil, err
	}
	provisioner := provisioning.NewProvisioner(r.store, quiet{}, nil, r.cluster, clock.RealClock{}, nil, nil)
	for _, pod := range r.scenario.Pods {
		if err := provisioner.Validate(ctx, pod); err != nil {
			r.refused[pod] = err
			continue
		}
		r.pods = append(r.pods, pod)
	}
	pools := append([]*karpv1.NodePool{}, r.scenario.NodePools...)
	nodepool.OrderByWeight(pools)
	types := map[string][]*cloudprovider.InstanceType{}
	for _, pool := range pools {
		types[pool.Name] = r.types
	}
	nodes := r.cluster.DeepCopyNodes().Active()
	options := []scheduling.Options{
		scheduling.NumConcurrentReconciles(r.options.Concurrency),
		scheduling.MinValuesPolicy(karpoptions.MinValuesPolicyStrict),
	}
	if !r.options.ReservedFallback {
		options = append(options, scheduling.DisableReservedCapacityFallback)
	}
	if r.options.CreditReservation != "" {
		options = append(options, scheduling.CreditReservationCapacity(r.options.CreditReservation, 1))
	}
	topology, err := scheduling.NewTopology(ctx, r.store, r.cluster, nodes, pools, types, r.pods, options...)
	if err != nil {
		return nil, fmt.Errorf("tracking topology: %w", err)
	}
	return scheduling.NewScheduler(ctx, r.store, pools, r.cluster, nodes, topology, types, r.scenario.DaemonSetPods, quiet{}, clock.RealClock{}, nil, nil, options...), nil
}

// solve is the measured part.
func (r *run) solve(ctx context.Context, scheduler *scheduling.Scheduler) (scheduling.Results, Effort, error) {
	limited, cancel := ctx, func() {}
	if r.options.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, r.options.Timeout)
	}
	defer cancel()
	m := meter.Start()
	results, err := scheduler.Solve(limited, r.pods)
	spent := effort(m.Stop())
	spent.TimedOut = errors.Is(err, context.DeadlineExceeded)
	if err != nil && !spent.TimedOut {
		return results, Effort{}, err
	}
	return results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes), spent, nil
}
