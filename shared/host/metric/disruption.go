package metric

var (
	labelDecision    = Label{Name: "decision", Help: "replace, delete, reboot, or terminate-first if the node is removed before its replacement is launched", Max: 4}
	labelReason      = Label{Name: "reason", Help: "empty, drifted, underutilized or unhealthy", Max: 4}
	labelFirstReason = Label{Name: "terminate_first_reason", Help: "no-reserved-capacity or static-at-limit", Max: 2}
	labelCostResult  = Label{Name: "result", Help: "updated, skipped_unchanged, skipped_notfound, skipped_conflict or error", Max: 5}
	labelMethod      = Label{Name: "consolidation_type", Help: "empty, multi or single; empty value for drift", Max: 4, Bare: true}
)

// Disruption metrics with Karpenter's names, so that its dashboards and alarms keep
// working. The service that makes the decision counts it: disruption proposes, and
// lifecycle starts.
var (
	Decisions = Metric{
		Name: "karpenter_voluntary_disruption_decisions_total", Kind: Counter, Unit: "{decision}",
		Help:   "Disruptions that started.",
		Labels: []Label{labelDecision, labelReason, labelMethod}, Services: []string{"lifecycle"},
		Panel: "Disruptions", By: []string{"decision", "reason"},
	}
	TerminateFirst = Metric{
		Name: "karpenter_voluntary_disruption_terminate_first_decisions_total", Kind: Counter, Unit: "{decision}",
		Help:   "Disruptions that started and remove a node before its replacement is launched. Only with the feature gates TerminateFirstDrift and TerminateFirstRepair.",
		Labels: []Label{labelPool, labelReason, labelFirstReason}, Services: []string{"lifecycle"},
		Panel: "Disruptions by NodePool", By: []string{"nodepool", "reason"},
	}
	Eligible = Metric{
		Name: "karpenter_voluntary_disruption_eligible_nodes", Kind: Gauge, Unit: "{node}",
		Help:   "Nodes that may be disrupted, before budgets, in the last snapshot that was evaluated.",
		Labels: []Label{labelReason}, Services: []string{"disruption"},
		Panel: "Eligible nodes", By: []string{"reason"}, CloudWatch: []string{ByCluster, "reason"},
	}
	Timeouts = Metric{
		Name: "karpenter_voluntary_disruption_consolidation_timeouts_total", Kind: Counter, Unit: "{evaluation}",
		Help:   "Evaluations of a snapshot in which a simulation reached its work limit before it had placed all pods.",
		Labels: []Label{labelMethod}, Services: []string{"disruption"},
		Panel: "Failed disruptions", By: []string{"consolidation_type"}, CloudWatch: []string{ByCluster},
	}
	Invalid = Metric{
		Name: "karpenter_voluntary_disruption_failed_validations_total", Kind: Counter, Unit: "{node}",
		Help:   "Nodes whose proposed disruption failed validation and did not start.",
		Labels: []Label{labelMethod}, Services: []string{"lifecycle"},
		Panel: "Failed disruptions", By: []string{"consolidation_type"},
	}
	QueueFailures = Metric{
		Name: "karpenter_voluntary_disruption_queue_failures_total", Kind: Counter, Unit: "{node}",
		Help:   "Replacement nodes that were not initialized when their disruption was rolled back.",
		Labels: []Label{labelDecision, labelReason, labelMethod}, Services: []string{"lifecycle"},
		Panel: "Failed disruptions", By: []string{"decision", "reason"},
	}
)

// The annotation controller.kubernetes.io/pod-deletion-cost, which lifecycle writes with the feature
// gate PodDeletionCostManagement. Without it, these metrics have no series.
var (
	DeletionCostNodes = Metric{
		Name: "karpenter_pod_deletion_cost_nodes_with_pending_annotation_writes", Kind: Gauge, Unit: "{node}",
		Help:   "Nodes with a pod whose pod-deletion-cost the last ranking changes. Only with the feature gate PodDeletionCostManagement.",
		Labels: []Label{labelPool}, Services: []string{"lifecycle"}, Panel: "Pod deletion costs", By: []string{"nodepool"},
	}
	DeletionCostWrites = Metric{
		Name: "karpenter_pod_deletion_cost_pod_annotation_writes_total", Kind: Counter, Unit: "{write}",
		Help:   "Writes of pod-deletion-cost, by result. Only with the feature gate PodDeletionCostManagement.",
		Labels: []Label{labelCostResult}, Services: []string{"lifecycle"}, Panel: "Pod deletion costs", By: []string{"result"},
	}
)

var disruptionMetrics = []Metric{Decisions, TerminateFirst, Eligible, Timeouts, Invalid, QueueFailures, DeletionCostNodes, DeletionCostWrites}
