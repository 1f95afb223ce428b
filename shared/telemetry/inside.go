package telemetry

var (
	labelPool     = Label{Name: "nodepool", Help: "the NodePool", Max: 30}
	labelZone     = Label{Name: "zone", Help: "the availability zone", Max: 6}
	labelOf       = Label{Name: "capacity_type", Help: "spot, on-demand or reserved, and nothing while it is not known", Max: 4, Bare: true}
	labelMade     = Label{Name: "reason", Help: "provisioned, or what a replacement is for: drifted, underutilized, empty", Max: 6}
	labelRelaxed  = Label{Name: "min_values_relaxed", Help: "true where a minValues was not kept to", Max: 2}
	labelEnded    = Label{Name: "reason", Help: "why it was let go, in Karpenter's words where it has one", Max: 16}
	labelResource = Label{Name: "resource_type", Help: "cpu, memory, nodes and so on", Max: 10}
	labelNotice   = Label{Name: "message_type", Help: "Karpenter's word for the kind of the notice", Max: 10}
)

// The story of pods as the watcher sees it.
var (
	Waiting = Metric{
		Name: "joist_pods_waiting", Kind: Gauge, Unit: "{pod}",
		Help:     "Pods that wait for a node, or whose node goes away, as the watcher sees them.",
		Services: []string{"watcher"}, Panel: "Pods that wait", CloudWatch: []string{ByCluster},
	}
	Bound = Metric{
		Name: "karpenter_pods_bound_duration_seconds", Kind: Histogram, Unit: "s", Buckets: karpenterBuckets,
		Help:     "The time from a pod's creation until it was seen bound to a node.",
		Services: []string{"watcher"}, Panel: "Time to run", CloudWatch: []string{ByCluster},
	}
	Started = Metric{
		Name: "karpenter_pods_startup_duration_seconds", Kind: Summary, Unit: "s",
		Help:     "The time from a pod's creation until it was seen running and ready.",
		Services: []string{"watcher"}, Panel: "Time to run", CloudWatch: []string{ByCluster},
	}
	Sent = Metric{
		Name: "joist_messages_sent_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages that the watcher sent.",
		Labels: []Label{labelService, labelType}, Services: []string{"watcher"}, Panel: "Messages of the watcher", By: []string{"type"},
	}
)

// The story of notices, as interruption hears them.
var (
	Received = Metric{
		Name: "karpenter_interruption_received_messages_total", Kind: Counter, Unit: "{message}",
		Help:   "Events of AWS that were received and could be read.",
		Labels: []Label{labelNotice}, Services: []string{"interruption"}, Panel: "Notices", By: []string{"message_type"},
		CloudWatch: []string{ByCluster, "message_type"},
	}
	Deleted = Metric{
		Name: "karpenter_interruption_deleted_messages_total", Kind: Counter, Unit: "{message}",
		Help:     "Events of AWS that were dealt with and deleted from the queue.",
		Services: []string{"interruption"}, Panel: "Notices",
	}
	Heard = Metric{
		Name: "karpenter_interruption_message_queue_duration_seconds", Kind: Histogram, Unit: "s", Buckets: karpenterBuckets,
		Help:     "The time from when the queue took an event of AWS until it was dealt with.",
		Services: []string{"interruption"}, Panel: "Wait of notices", CloudWatch: []string{ByCluster},
	}
)

// The lives of NodeClaims and nodes, as lifecycle sees them.
var (
	ClaimsCreated = Metric{
		Name: "karpenter_nodeclaims_created_total", Kind: Counter, Unit: "{nodeclaim}",
		Help:   "NodeClaims that were made.",
		Labels: []Label{labelMade, labelPool, labelRelaxed}, Services: []string{"lifecycle"}, Panel: "Planned", By: []string{"reason"},
		CloudWatch: []string{ByCluster, "reason"},
	}
	NodesCreated = Metric{
		Name: "karpenter_nodes_created_total", Kind: Counter, Unit: "{node}",
		Help:   "Nodes that registered.",
		Labels: []Label{labelPool, labelZone}, Services: []string{"lifecycle"}, Panel: "Joined", By: []string{"nodepool"},
		CloudWatch: []string{ByCluster},
	}
	Initialized = Metric{
		Name: "joist_nodeclaim_initialized_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "The time from the creation of a NodeClaim until its node was initialized.",
		Labels: []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Joined", CloudWatch: []string{ByCluster},
	}
	ClaimsDisrupted = Metric{
		Name: "karpenter_nodeclaims_disrupted_total", Kind: Counter, Unit: "{nodeclaim}",
		Help:   "NodeClaims that were let go, by the reason.",
		Labels: []Label{labelEnded, labelPool, labelOf}, Services: []string{"lifecycle"}, Panel: "Nodes that go", By: []string{"reason"},
		CloudWatch: []string{ByCluster, "reason"},
	}
	ClaimsTerminated = Metric{
		Name: "karpenter_nodeclaims_terminated_total", Kind: Counter, Unit: "{nodeclaim}",
		Help:   "NodeClaims that are gone.",
		Labels: []Label{labelPool, labelOf, labelZone}, Services: []string{"lifecycle"}, Panel: "Nodes that go", By: []string{"capacity_type"},
		CloudWatch: []string{ByCluster},
	}
	NodesTerminated = Metric{
		Name: "karpenter_nodes_terminated_total", Kind: Counter, Unit: "{node}",
		Help:   "Nodes of NodeClaims that are gone.",
		Labels: []Label{labelPool, labelZone}, Services: []string{"lifecycle"}, Panel: "Nodes that go", By: []string{"nodepool"},
	}
	NodeTermination = Metric{
		Name: "karpenter_nodes_termination_duration_seconds", Kind: Summary, Unit: "s",
		Help:   "The time from a node's deletion until it was gone.",
		Labels: []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Time to go", CloudWatch: []string{ByCluster},
	}
	ClaimTermination = Metric{
		Name: "karpenter_nodeclaims_termination_duration_seconds", Kind: Histogram, Unit: "s",
		// Karpenter's own buckets (pkg/controllers/nodeclaim/lifecycle/metrics.go of v1.14.0).
		Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048},
		Help:    "The time from a NodeClaim's deletion until it was gone.",
		Labels:  []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Time to go",
	}
	Overdue = Metric{
		Name: "joist_drains_overdue_total", Kind: Counter, Unit: "{node}",
		Help:   "Nodes that were not drained when AWS took their instance at the time that it had announced.",
		Labels: []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Past the deadline", By: []string{"nodepool"},
		CloudWatch: []string{ByCluster},
	}
	SweepsStopped = Metric{
		Name: "joist_sweeps_stopped_total", Kind: Counter, Unit: "{sweep}",
		Help:     "Times that more would have been taken for gone at once than can be believed, and was left alone.",
		Services: []string{"lifecycle"}, Panel: "Held back", CloudWatch: []string{ByCluster},
	}
)

// What NodePools have and cost.
var (
	Usage = Metric{
		Name: "karpenter_nodepools_usage", Kind: Gauge, Unit: "1",
		Help:   "What the NodeClaims of a NodePool have of each resource, in the units of Kubernetes.",
		Labels: []Label{labelResource, labelPool}, Services: []string{"lifecycle"}, Panel: "Usage of limits", By: []string{"nodepool", "resource_type"},
	}
	Limit = Metric{
		Name: "karpenter_nodepools_limit", Kind: Gauge, Unit: "1",
		Help:   "What a NodePool may have of each resource at most, in the units of Kubernetes.",
		Labels: []Label{labelResource, labelPool}, Services: []string{"lifecycle"}, Panel: "Usage of limits", By: []string{"nodepool", "resource_type"},
	}
	Cost = Metric{
		Name: "karpenter_nodepools_cost_total", Kind: Gauge, Unit: "{USD}/h",
		Help:   "What the instances of a NodePool were bought for, in US dollars an hour; those of unknown price are left out.",
		Labels: []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Cost by NodePool", By: []string{"nodepool"},
		CloudWatch: []string{ByCluster, "nodepool"},
	}
)

var inside = []Metric{
	Waiting, Bound, Started, Sent, Received, Deleted, Heard,
	ClaimsCreated, NodesCreated, Initialized, ClaimsDisrupted, ClaimsTerminated, NodesTerminated, NodeTermination, ClaimTermination, Overdue,
	SweepsStopped,
	Usage, Limit, Cost,
}
