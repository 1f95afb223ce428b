package metric

var (
	labelPolicy       = Label{Name: "policy", Help: "the NodePool's consolidationPolicy", Max: 3}
	labelMoveDecision = Label{Name: "decision", Help: "approved or rejected", Max: 2}
	balancedScore     = []float64{0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10}
)

// Disruption by method, NodePool and policy, with Karpenter's names, labels and buckets.
var (
	PoolDecisions = Metric{
		Name: "karpenter_voluntary_disruption_decisions_by_nodepool_total", Kind: Counter, Unit: "{decision}",
		Help:   "Disruptions that started, counted once for each NodePool that loses nodes.",
		Labels: []Label{labelPool, labelDecision, labelReason, labelMethod}, Services: []string{"lifecycle"},
		Panel: "Disruptions by NodePool", By: []string{"nodepool", "reason"},
	}
	EvaluationTime = Metric{
		Name: "karpenter_voluntary_disruption_decision_evaluation_duration_seconds", Kind: Histogram, Unit: "s", Buckets: karpenterBuckets,
		Help:   "Time that one disruption method took to evaluate a snapshot, without the work that all methods share.",
		Labels: []Label{labelReason, labelMethod}, Services: []string{"disruption"},
		Panel: "Disruption evaluation time", By: []string{"reason", "consolidation_type"}, CloudWatch: []string{ByCluster},
	}
	ConsolidationMoves = Metric{
		Name: "karpenter_consolidation_moves_total", Kind: Counter, Unit: "{move}",
		Help:   "Consolidation moves, counted once for each NodePool: approved (proposed to lifecycle) or rejected by a Balanced NodePool.",
		Labels: []Label{labelMoveDecision, labelPool, labelPolicy}, Services: []string{"disruption"},
		Panel: "Consolidation moves", By: []string{"decision", "policy"}, CloudWatch: []string{ByCluster, "decision"},
	}
	ConsolidationScore = Metric{
		Name: "karpenter_consolidation_score", Kind: Histogram, Unit: "{score}", Buckets: balancedScore,
		Help:   "Score of consolidation moves in Balanced NodePools, which require 0.5.",
		Labels: []Label{labelMoveDecision, labelPool, labelPolicy}, Services: []string{"disruption"},
		Panel: "Consolidation score", By: []string{"decision"},
	}
)

var consolidationMetrics = []Metric{PoolDecisions, EvaluationTime, ConsolidationMoves, ConsolidationScore}
