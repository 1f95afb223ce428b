package telemetry

var (
	labelLimit      = Label{Name: "kind", Help: "throttled for too many within a minute, denied for too many in one intent", Max: 2}
	labelCode       = Label{Name: "code", Help: "EC2's error code, or other", Max: 20}
	labelSold       = Label{Name: "capacity_type", Help: "spot, on-demand or reserved", Max: 3}
	labelThing      = Label{Name: "thing", Help: "instance or profile", Max: 2}
	labelController = Label{Name: "controller", Help: "provisioner, as Karpenter calls it", Max: 1}
)

// The story of pods that become nodes: what waits, what was planned, and what EC2 gave.
var (
	Pending = Metric{
		Name: "joist_batch_pods", Kind: Gauge, Unit: "{pod}",
		Help:     "Pods in the last batch that was planned: those that wait for a node, or whose node goes away.",
		Services: []string{"planner"}, Panel: "Pods that wait", CloudWatch: []string{ByCluster},
	}
	Unplaced = Metric{
		Name: "karpenter_scheduler_unschedulable_pods_count", Kind: Gauge, Unit: "{pod}",
		Help:   "Pods of the last batch for which no node would do, whatever was launched.",
		Labels: []Label{labelController}, Services: []string{"planner"}, Panel: "Pods that wait", CloudWatch: []string{ByCluster},
	}
	Ignored = Metric{
		Name: "karpenter_scheduler_ignored_pods_count", Kind: Gauge, Unit: "{pod}",
		Help:     "Pods that wait and are not for Joist to plan, when the last batch was made.",
		Services: []string{"planner"}, Panel: "Pods that wait", CloudWatch: []string{ByCluster},
	}
	Planned = Metric{
		Name: "joist_nodeclaims_planned_total", Kind: Counter, Unit: "{nodeclaim}",
		Help:     "NodeClaims that plans ask for. The door may refuse some, and pods that still wait are planned again.",
		Services: []string{"planner"}, Panel: "Planned", CloudWatch: []string{ByCluster},
	}
	Solving = Metric{
		Name: "karpenter_scheduler_scheduling_duration_seconds", Kind: Histogram, Unit: "s", Buckets: karpenterBuckets,
		Help:   "How long it took to plan a batch.",
		Labels: []Label{labelController}, Services: []string{"planner"}, Panel: "Time to plan", CloudWatch: []string{ByCluster},
	}
	PlannedPrice = Metric{
		Name: "joist_planned_usd_per_hour_total", Kind: Counter, Unit: "{USD}/h",
		Help:     "What the NodeClaims that plans ask for cost, in US dollars an hour.",
		Services: []string{"planner"}, Panel: "Price of what is planned", CloudWatch: []string{ByCluster},
	}
	Launched = Metric{
		Name: "joist_instances_launched_total", Kind: Counter, Unit: "{instance}",
		Help:   "Instances that EC2 started for an intent.",
		Labels: []Label{labelSold}, Services: []string{"launcher"}, Panel: "Launched and refused", By: []string{"capacity_type"},
		CloudWatch: []string{ByCluster, "capacity_type"},
	}
	Refusals = Metric{
		Name: "joist_launch_refusals_total", Kind: Counter, Unit: "{refusal}",
		Help:   "Reasons that EC2 gave for starting fewer instances than it was asked for.",
		Labels: []Label{labelCode, labelSold}, Services: []string{"launcher"}, Panel: "Launched and refused", By: []string{"code", "capacity_type"},
		CloudWatch: []string{ByCluster, "capacity_type"},
	}
	Ended = Metric{
		Name: "joist_instances_ended_total", Kind: Counter, Unit: "{instance}",
		Help:     "Instances that EC2 was told to end.",
		Services: []string{"launcher"}, Panel: "Ended", CloudWatch: []string{ByCluster},
	}
	Stopped = Metric{
		Name: "joist_launches_stopped_total", Kind: Counter, Unit: "{message}",
		Help:   "Requests for launches that the breaker held back, each time that they came.",
		Labels: []Label{labelLimit}, Services: []string{"launcher"}, Panel: "Held back", By: []string{"kind"}, CloudWatch: []string{ByCluster},
	}
	Spared = Metric{
		Name: "joist_foreign_spared_total", Kind: Counter, Unit: "{message}",
		Help:   "Requests to touch something that does not carry the cluster's tags or stands for another claim; it was left alone.",
		Labels: []Label{labelThing}, Services: []string{"launcher"}, Panel: "Held back", By: []string{"thing"}, CloudWatch: []string{ByCluster},
	}
)

var story = []Metric{Pending, Unplaced, Ignored, Planned, Solving, PlannedPrice, Launched, Refusals, Ended, Stopped, Spared}

// karpenterBuckets are Karpenter's own, so that its queries over buckets find them
// (pkg/metrics/constants.go of v1.14.0).
var karpenterBuckets = []float64{
	0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
	1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600,
}
