package metric

var (
	labelPool         = Label{Name: "nodepool", Help: "the NodePool", Max: 30}
	labelNodeClass    = Label{Name: "nodeclass", Help: "the EC2NodeClass", Max: 10}
	labelZone         = Label{Name: "zone", Help: "the availability zone", Max: 6}
	labelDynamic      = Label{Name: "dynamic_resources", Help: "true if the pod has ResourceClaims", Max: 2}
	labelPodCapacity  = Label{Name: "capacity_type", Help: "spot, on-demand or reserved; empty while it is not known", Max: 4, Bare: true}
	labelCreateReason = Label{Name: "reason", Help: "provisioned, or the reason for a replacement: drifted, underutilized, empty or unhealthy", Max: 6}
	labelRelaxed      = Label{Name: "min_values_relaxed", Help: "true if a minValues was relaxed", Max: 2}
	labelEndReason    = Label{Name: "reason", Help: "the reason, as Karpenter names it where it has one", Max: 16}
	labelEndPolicy    = Label{Name: "consolidation_policy", Help: "the NodePool's consolidationPolicy in snake case: when_empty, when_empty_or_underutilized or balanced; empty if the reason is not consolidation", Max: 4, Bare: true, Implied: true}
	labelEndMode      = Label{Name: "termination_mode", Help: "graceful without a terminationGracePeriod, eventual with one, forceful if it is 0", Max: 3, Implied: true}
	labelCondition    = Label{Name: "condition", Help: "the condition of the node in snake case, such as ready", Max: 7}
	labelImage        = Label{Name: "image_id", Help: "the AMI of the instance", Max: 10, Bare: true, Implied: true}
	labelDrainReason  = Label{Name: "reason", Help: "the reason of the NodeClaim's disruption as its condition states it (Drifted), or Forceful Termination; empty without a NodeClaim", Max: 6, Bare: true}
	labelReboot       = Label{Name: "result", Help: "succeeded; provider_error, if EC2 did not accept it; recovery_timeout; invalid_request", Max: 4}
	labelResource     = Label{Name: "resource_type", Help: "cpu, memory, nodes and others", Max: 10}
	labelNotice       = Label{Name: "message_type", Help: "the kind of the event, as Karpenter names it", Max: 10}
)

// rebootSeconds are Karpenter's buckets (Karpenter: pkg/controllers/nodeclaim/reboot/metrics.go).
var rebootSeconds = []float64{10, 20, 40, 80, 160, 320, 640, 1280}

// Pods, as the watcher sees them.
var (
	WaitingPods = Metric{
		Name: "joist_pods_waiting", Kind: Gauge, Unit: "{pod}",
		Help:     "Pods in the watcher's cache that are pending or whose node is being removed.",
		Services: []string{"watcher"}, Panel: "Pending pods", CloudWatch: []string{ByCluster},
	}
	PodBoundTime = Metric{
		Name: "karpenter_pods_bound_duration_seconds", Kind: Histogram, Unit: "s", Buckets: karpenterBuckets,
		Help:   "Time from the creation of a pod until the watcher saw it bound to a node.",
		Labels: []Label{labelDynamic}, Services: []string{"watcher"}, Panel: "Pod startup time", CloudWatch: []string{ByCluster},
	}
	PodStartupTime = Metric{
		Name: "karpenter_pods_startup_duration_seconds", Kind: Summary, Unit: "s",
		Help:     "Time from the creation of a pod until the watcher saw it running and ready.",
		Services: []string{"watcher"}, Panel: "Pod startup time", CloudWatch: []string{ByCluster},
	}
	MessagesSent = Metric{
		Name: "joist_messages_sent_total", Kind: Counter, Unit: "{message}",
		Help:   "Messages sent by the watcher.",
		Labels: []Label{labelService, labelType}, Services: []string{"watcher"}, Panel: "Messages sent by the watcher", By: []string{"type"},
	}
)

// Events from AWS, as interruption receives them.
var (
	NoticesReceived = Metric{
		Name: "karpenter_interruption_received_messages_total", Kind: Counter, Unit: "{message}",
		Help:   "Valid events received from AWS.",
		Labels: []Label{labelNotice}, Services: []string{"interruption"}, Panel: "Interruption notices", By: []string{"message_type"},
		CloudWatch: []string{ByCluster, "message_type"},
	}
	NoticesDeleted = Metric{
		Name: "karpenter_interruption_deleted_messages_total", Kind: Counter, Unit: "{message}",
		Help:     "Events from AWS that were processed and deleted from the queue.",
		Services: []string{"interruption"}, Panel: "Interruption notices",
	}
	NoticeLatency = Metric{
		Name: "karpenter_interruption_message_queue_duration_seconds", Kind: Histogram, Unit: "s", Buckets: karpenterBuckets,
		Help:     "Time from the arrival of an event from AWS in the queue until it was processed.",
		Services: []string{"interruption"}, Panel: "Interruption handling latency", CloudWatch: []string{ByCluster},
	}
)

// NodeClaims and nodes, as lifecycle sees them.
var (
	ClaimsCreated = Metric{
		Name: "karpenter_nodeclaims_created_total", Kind: Counter, Unit: "{nodeclaim}",
		Help:   "NodeClaims created.",
		Labels: []Label{labelCreateReason, labelPool, labelRelaxed}, Services: []string{"lifecycle"}, Panel: "NodeClaims planned and created", By: []string{"reason"},
		CloudWatch: []string{ByCluster, "reason"},
	}
	NodesCreated = Metric{
		Name: "karpenter_nodes_created_total", Kind: Counter, Unit: "{node}",
		Help:   "Nodes that registered.",
		Labels: []Label{labelPool, labelZone}, Services: []string{"lifecycle"}, Panel: "Nodes joined", By: []string{"nodepool"},
		CloudWatch: []string{ByCluster},
	}
	ClaimInitialization = Metric{
		Name: "joist_nodeclaim_initialized_seconds", Kind: Histogram, Unit: "s", Buckets: seconds,
		Help:   "Time from the creation of a NodeClaim until its node was initialized.",
		Labels: []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Nodes joined", CloudWatch: []string{ByCluster},
	}
	ClaimsDisrupted = Metric{
		Name: "karpenter_nodeclaims_disrupted_total", Kind: Counter, Unit: "{nodeclaim}",
		Help:   "NodeClaims whose deletion began, by reason.",
		Labels: []Label{labelEndReason, labelPool, labelPodCapacity, labelEndPolicy, labelEndMode}, Services: []string{"lifecycle"}, Panel: "Nodes terminated", By: []string{"reason"},
		CloudWatch: []string{ByCluster, "reason"},
	}
	UnhealthyDisrupted = Metric{
		Name: "karpenter_nodeclaims_unhealthy_disrupted_total", Kind: Counter, Unit: "{nodeclaim}",
		Help:   "NodeClaims whose deletion began because of a condition of their node. Only with the feature gate NodeRepair.",
		Labels: []Label{labelCondition, labelPool, labelPodCapacity, labelImage, labelEndMode}, Services: []string{"lifecycle"}, Panel: "Nodes terminated", By: []string{"condition"},
	}
	PodsDisrupted = Metric{
		Name: "karpenter_pods_disruption_initiated_total", Kind: Counter, Unit: "{pod}",
		Help:   "Pods that need another node because the deletion of their NodeClaim began. Interruptions and failed launches do not count.",
		Labels: []Label{labelEndReason, labelPool, labelPodCapacity, labelEndPolicy, labelEndMode}, Services: []string{"lifecycle"}, Panel: "Pods of terminated nodes", By: []string{"reason"},
	}
	PodsDrained = Metric{
		Name: "karpenter_pods_drained_total", Kind: Counter, Unit: "{pod}",
		Help:   "Pods that were evicted or deleted to drain a node.",
		Labels: []Label{labelDrainReason}, Services: []string{"lifecycle"}, Panel: "Pods of terminated nodes", By: []string{"reason"},
	}
	ClaimsTerminated = Metric{
		Name: "karpenter_nodeclaims_terminated_total", Kind: Counter, Unit: "{nodeclaim}",
		Help:   "NodeClaims terminated.",
		Labels: []Label{labelPool, labelPodCapacity, labelZone}, Services: []string{"lifecycle"}, Panel: "Nodes terminated", By: []string{"capacity_type"},
		CloudWatch: []string{ByCluster},
	}
	NodesTerminated = Metric{
		Name: "karpenter_nodes_terminated_total", Kind: Counter, Unit: "{node}",
		Help:   "Nodes terminated.",
		Labels: []Label{labelPool, labelZone}, Services: []string{"lifecycle"}, Panel: "Nodes terminated", By: []string{"nodepool"},
	}
	NodeTermination = Metric{
		Name: "karpenter_nodes_termination_duration_seconds", Kind: Summary, Unit: "s",
		Help:   "Time from the deletion of a node until it was terminated.",
		Labels: []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Termination time", CloudWatch: []string{ByCluster},
	}
	ClaimTermination = Metric{
		Name: "karpenter_nodeclaims_termination_duration_seconds", Kind: Histogram, Unit: "s",
		// Karpenter's own buckets (Karpenter: pkg/controllers/nodeclaim/lifecycle/metrics.go).
		Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048},
		Help:    "Time from the deletion of a NodeClaim until it was terminated.",
		Labels:  []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Termination time",
	}
	NodesRebooted = Metric{
		Name: "karpenter_nodes_reboots_total", Kind: Counter, Unit: "{reboot}",
		Help:   "Reboots of nodes that ended, by result.",
		Labels: []Label{labelReboot}, Services: []string{"lifecycle"}, Panel: "Node reboots", By: []string{"result"},
	}
	RebootTime = Metric{
		Name: "karpenter_nodes_reboot_duration_seconds", Kind: Histogram, Unit: "s", Buckets: rebootSeconds,
		Help:   "Time from the request of a reboot until its end.",
		Labels: []Label{labelReboot}, Services: []string{"lifecycle"}, Panel: "Reboot time",
	}
	RebootRecoveryTime = Metric{
		Name: "karpenter_nodes_reboot_recovery_duration_seconds", Kind: Histogram, Unit: "s", Buckets: rebootSeconds,
		Help:     "Time from EC2's acceptance of a reboot until the node was ready with a new boot ID.",
		Services: []string{"lifecycle"}, Panel: "Reboot time",
	}
	DrainsOverdue = Metric{
		Name: "joist_drains_overdue_total", Kind: Counter, Unit: "{node}",
		Help:   "Nodes that were not fully drained when AWS terminated their instance at the announced time.",
		Labels: []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Drains past the deadline", By: []string{"nodepool"},
		CloudWatch: []string{ByCluster},
	}
	GarbageCollectionStopped = Metric{
		Name: "joist_garbage_collections_stopped_total", Kind: Counter, Unit: "{run}",
		Help:     "Times that lifecycle refused to remove more than three nodes and more than a tenth of the cluster at once.",
		Services: []string{"lifecycle"}, Panel: "Launches paused, requests refused", CloudWatch: []string{ByCluster},
	}
)

// PoolUsage, limits and cost of NodePools.
var (
	PoolUsage = Metric{
		Name: "karpenter_nodepools_usage", Kind: Gauge, Unit: "1",
		Help:   "Resources of the NodeClaims of a NodePool, in Kubernetes units.",
		Labels: []Label{labelResource, labelPool}, Services: []string{"lifecycle"}, Panel: "NodePool usage and limits", By: []string{"nodepool", "resource_type"},
	}
	PoolLimit = Metric{
		Name: "karpenter_nodepools_limit", Kind: Gauge, Unit: "1",
		Help:   "Resource limits of a NodePool, in Kubernetes units.",
		Labels: []Label{labelResource, labelPool}, Services: []string{"lifecycle"}, Panel: "NodePool usage and limits", By: []string{"nodepool", "resource_type"},
	}
	PoolAllowedDisruptions = Metric{
		Name: "karpenter_nodepools_allowed_disruptions", Kind: Gauge, Unit: "{node}",
		Help:   "Nodes of a NodePool that its budgets allow to be removed at the same time.",
		Labels: []Label{labelPool, labelReason}, Services: []string{"lifecycle"}, Panel: "Disruption budgets", By: []string{"nodepool", "reason"},
	}
	PoolConsumedBudgets = Metric{
		Name: "karpenter_nodepools_nodes_consuming_budgets", Kind: Gauge, Unit: "{node}",
		Help:   "Nodes of a NodePool that its budgets count as removed: nodes that are being removed, and nodes that are not ready.",
		Labels: []Label{labelPool, labelReason}, Services: []string{"lifecycle"}, Panel: "Disruption budgets", By: []string{"nodepool", "reason"},
	}
	UserDataSize = Metric{
		Name: "karpenter_ec2nodeclasses_userdata_bytes", Kind: Gauge, Unit: "By",
		Help:   "Size of the user data in the last launch of an EC2NodeClass that lifecycle verified, before base64, of at most 16384 bytes.",
		Labels: []Label{labelNodeClass}, Services: []string{"lifecycle"}, Panel: "User data size", By: []string{"nodeclass"},
	}
	PoolCost = Metric{
		Name: "karpenter_nodepools_cost_total", Kind: Gauge, Unit: "{USD}/h",
		Help:   "Launch price of the instances of a NodePool, in US dollars per hour, without instances of unknown price.",
		Labels: []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Cost by NodePool", By: []string{"nodepool"},
		CloudWatch: []string{ByCluster, "nodepool"},
	}
)

var clusterMetrics = []Metric{
	WaitingPods, PodBoundTime, PodStartupTime, MessagesSent, NoticesReceived, NoticesDeleted, NoticeLatency,
	ClaimsCreated, NodesCreated, ClaimInitialization, ClaimsDisrupted, UnhealthyDisrupted, PodsDisrupted, PodsDrained, ClaimsTerminated, NodesTerminated, NodeTermination, ClaimTermination, NodesRebooted, RebootTime, RebootRecoveryTime, DrainsOverdue,
	GarbageCollectionStopped,
	PoolUsage, PoolLimit, PoolAllowedDisruptions, PoolConsumedBudgets, UserDataSize, PoolCost,
}
