package telemetry

var (
	labelPolicy   = Label{Name: "policy", Help: "the NodePool's consolidationPolicy", Max: 3}
	labelWeighed  = Label{Name: "decision", Help: "approved or rejected", Max: 2}
	balancedScore = []float64{0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10}
)

// The metrics of disruption by method, NodePool and policy, under Karpenter's names and
// with its labels and buckets (B212).
var (
	PoolDecisions = Metric{
		Name: "karpenter_voluntary_disruption_decisions_by_nodepool_total", Kind: Counter, Unit: "{decision}",
		Help:   "Disruptions that began to act, once for each NodePool that they take nodes from.",
		Labels: []Label{labelPool, labelDecision, labelReason, labelMethod}, Services: []string{"lifecycle"},
		Panel: "Disruptions by NodePool", By: []string{"nodepool", "reason"},
	}
	Evaluation = Metric{
		Name: "karpenter_voluntary_disruption_decision_evaluation_duration_seconds", Kind: Histogram, Unit: "s", Buckets: karpenterBuckets,
		Help:   "How long one method of disruption looked at a snapshot. What all methods share is in none of them.",
		Labels: []Label{labelReason, labelMethod}, Services: []string{"disruption"},
		Panel: "Looking for disruptions", By: []string{"reason", "consolidation_type"}, CloudWatch: []string{ByCluster},
	}
	Moves = Metric{
		Name: "karpenter_consolidation_moves_total", Kind: Counter, Unit: "{move}",
		Help:   "Moves of consolidation, once for each NodePool: approved are those proposed, rejected those that a Balanced pool refused.",
		Labels: []Label{labelWeighed, labelPool, labelPolicy}, Services: []string{"disruption"},
		Panel: "Moves of consolidation", By: []string{"decision", "policy"}, CloudWatch: []string{ByCluster, "decision"},
	}
	Score = Metric{
		Name: "karpenter_consolidation_score", Kind: Histogram, Unit: "{score}", Buckets: balancedScore,
		Help:   "What the moves of consolidation were worth to Balanced pools, which ask for a half.",
		Labels: []Label{labelWeighed, labelPool, labelPolicy}, Services: []string{"disruption"},
		Panel: "What moves are worth", By: []string{"decision"},
	}
)

var weighed = []Metric{PoolDecisions, Evaluation, Moves, Score}
