package telemetry

var (
	labelPool     = Label{Name: "nodepool", Help: "the NodePool", Max: 50}
	labelPolicy   = Label{Name: "policy", Help: "the NodePool's consolidationPolicy", Max: 3}
	labelWeighed  = Label{Name: "decision", Help: "approved or rejected", Max: 2}
	decisionTime  = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600}
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
		Name: "karpenter_voluntary_disruption_decision_evaluation_duration_seconds", Kind: Histogram, Unit: "s", Buckets: decisionTime,
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
