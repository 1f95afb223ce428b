package telemetry

var (
	labelDecision = Label{Name: "decision", Help: "replace or delete", Max: 2}
	labelReason   = Label{Name: "reason", Help: "empty, drifted or underutilized", Max: 3}
	labelMethod   = Label{Name: "consolidation_type", Help: "empty, multi or single, and nothing for drift", Max: 4, Bare: true}
)

// The metrics of disruption that Karpenter has too, under its names, so that its
// dashboards and alarms go on working (B165). Which service counts what follows from
// who decides: disruption finds, and lifecycle lets act.
var (
	Decisions = Metric{
		Name: "karpenter_voluntary_disruption_decisions_total", Kind: Counter, Unit: "{decision}",
		Help:   "Disruptions that began to act.",
		Labels: []Label{labelDecision, labelReason, labelMethod}, Services: []string{"lifecycle"},
		Panel: "Disruptions", By: []string{"decision", "reason"},
	}
	Eligible = Metric{
		Name: "karpenter_voluntary_disruption_eligible_nodes", Kind: Gauge, Unit: "{node}",
		Help:   "Nodes against which nothing of their own stands, in the last snapshot that was looked at.",
		Labels: []Label{labelReason}, Services: []string{"disruption"},
		Panel: "Nodes that may be disrupted", By: []string{"reason"}, CloudWatch: []string{ByCluster, "reason"},
	}
	Timeouts = Metric{
		Name: "karpenter_voluntary_disruption_consolidation_timeouts_total", Kind: Counter, Unit: "{look}",
		Help:   "Looks at a snapshot in which the work that one simulation may take did not suffice for all pods.",
		Labels: []Label{labelMethod}, Services: []string{"disruption"},
		Panel: "Disruptions that failed", By: []string{"consolidation_type"}, CloudWatch: []string{ByCluster},
	}
	Invalid = Metric{
		Name: "karpenter_voluntary_disruption_failed_validations_total", Kind: Counter, Unit: "{node}",
		Help:   "Nodes whose disruption was proposed and taken back before it acted.",
		Labels: []Label{labelMethod}, Services: []string{"lifecycle"},
		Panel: "Disruptions that failed", By: []string{"consolidation_type"},
	}
	QueueFailures = Metric{
		Name: "karpenter_voluntary_disruption_queue_failures_total", Kind: Counter, Unit: "{node}",
		Help:   "Replacements that were not initialized when their disruption was rolled back.",
		Labels: []Label{labelDecision, labelReason, labelMethod}, Services: []string{"lifecycle"},
		Panel: "Disruptions that failed", By: []string{"decision", "reason"},
	}
)

var voluntary = []Metric{Decisions, Eligible, Timeouts, Invalid, QueueFailures}
