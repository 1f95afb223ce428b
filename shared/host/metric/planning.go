package metric

var (
	labelLimit         = Label{Name: "kind", Help: "throttled (too many instances within a minute) or denied (too many in one launch intent)", Max: 2}
	labelCode          = Label{Name: "code", Help: "EC2's error code, or other", Max: 20}
	labelCapacityType  = Label{Name: "capacity_type", Help: "spot, on-demand or reserved", Max: 3}
	labelOwnedResource = Label{Name: "resource", Help: "instance or profile", Max: 2}
	labelController    = Label{Name: "controller", Help: "always provisioner, as in Karpenter", Max: 1}
)

// Planning and launches.
var (
	BatchPods = Metric{
		Name: "joist_batch_pods", Kind: Gauge, Unit: "{pod}",
		Help:     "Pods in the last batch that was planned: pods that are pending or whose node is being removed.",
		Services: []string{"planner"}, Panel: "Pending pods", CloudWatch: []string{ByCluster},
	}
	UnschedulablePods = Metric{
		Name: "karpenter_scheduler_unschedulable_pods_count", Kind: Gauge, Unit: "{pod}",
		Help:   "Pods of the last batch that no node can run, existing or new.",
		Labels: []Label{labelController}, Services: []string{"planner"}, Panel: "Pending pods", CloudWatch: []string{ByCluster},
	}
	IgnoredPods = Metric{
		Name: "karpenter_scheduler_ignored_pods_count", Kind: Gauge, Unit: "{pod}",
		Help:     "Pending pods that Joist does not plan, at the time of the last batch.",
		Services: []string{"planner"}, Panel: "Pending pods", CloudWatch: []string{ByCluster},
	}
	ClaimsPlanned = Metric{
		Name: "joist_nodeclaims_planned_total", Kind: Counter, Unit: "{nodeclaim}",
		Help:     "NodeClaims in plans. Lifecycle may refuse some; pods that stay pending are planned again.",
		Services: []string{"planner"}, Panel: "NodeClaims planned and created", CloudWatch: []string{ByCluster},
	}
	PlanningTime = Metric{
		Name: "karpenter_scheduler_scheduling_duration_seconds", Kind: Histogram, Unit: "s", Buckets: karpenterBuckets,
		Help:   "Time to plan a batch.",
		Labels: []Label{labelController}, Services: []string{"planner"}, Panel: "Planning time", CloudWatch: []string{ByCluster},
	}
	PlannedPrice = Metric{
		Name: "joist_planned_usd_per_hour_total", Kind: Counter, Unit: "{USD}/h",
		Help:     "Price of the NodeClaims in plans, in US dollars per hour.",
		Services: []string{"planner"}, Panel: "Cost of planned NodeClaims", CloudWatch: []string{ByCluster},
	}
	InstancesLaunched = Metric{
		Name: "joist_instances_launched_total", Kind: Counter, Unit: "{instance}",
		Help:   "Instances that EC2 launched.",
		Labels: []Label{labelCapacityType}, Services: []string{"launcher"}, Panel: "Instances launched and refused", By: []string{"capacity_type"},
		CloudWatch: []string{ByCluster, "capacity_type"},
	}
	LaunchErrors = Metric{
		Name: "joist_launch_refusals_total", Kind: Counter, Unit: "{refusal}",
		Help:   "Errors that EC2 returned for launches, by code.",
		Labels: []Label{labelCode, labelCapacityType}, Services: []string{"launcher"}, Panel: "Instances launched and refused", By: []string{"code", "capacity_type"},
		CloudWatch: []string{ByCluster, "capacity_type"},
	}
	TerminationsRequested = Metric{
		Name: "joist_instances_terminated_total", Kind: Counter, Unit: "{instance}",
		Help:     "Instances whose termination was requested from EC2.",
		Services: []string{"launcher"}, Panel: "Terminations requested", CloudWatch: []string{ByCluster},
	}
	LaunchesPaused = Metric{
		Name: "joist_launches_paused_total", Kind: Counter, Unit: "{message}",
		Help:   "Launch requests above the safety limit of the launcher, counted at each attempt.",
		Labels: []Label{labelLimit}, Services: []string{"launcher"}, Panel: "Launches paused, requests refused", By: []string{"kind"}, CloudWatch: []string{ByCluster},
	}
	ForeignRequestsRefused = Metric{
		Name: "joist_foreign_requests_refused_total", Kind: Counter, Unit: "{message}",
		Help:   "Refused requests to change a resource that does not have the cluster's tags or belongs to another NodeClaim.",
		Labels: []Label{labelOwnedResource}, Services: []string{"launcher"}, Panel: "Launches paused, requests refused", By: []string{"resource"}, CloudWatch: []string{ByCluster},
	}
)

var planningMetrics = []Metric{BatchPods, UnschedulablePods, IgnoredPods, ClaimsPlanned, PlanningTime, PlannedPrice, InstancesLaunched, LaunchErrors, TerminationsRequested, LaunchesPaused, ForeignRequestsRefused}

// karpenterBuckets are Karpenter's buckets, so that queries over them keep working
// (Karpenter: pkg/metrics/constants.go).
var karpenterBuckets = []float64{
	0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
	1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600,
}
