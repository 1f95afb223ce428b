package explain

// adviceOf returns what would have to change for disruption to remove a node that a rule keeps.
func adviceOf(rule string) string {
	if text, ok := advice[rule]; ok {
		return text
	}
	return "see the rule in the README of the service disruption"
}

// advice is by disruption's rules, which services/disruption/README.md describes.
var advice = map[string]string{
	RuleNotManaged:             "only nodes with a NodeClaim are disrupted",
	"no-pool":                  "create its NodePool again, or delete the NodeClaim",
	"nodepool-deleting":        "approve the deletion of its NodePool, which removes its nodes, or keep them: see the annotation joist.sh/approve",
	"not-initialized":          "nothing: it is considered once it is initialized",
	"deleting":                 "nothing: it is being removed",
	"rebooting":                "nothing: it is considered after the reboot",
	"proposal-confirmed":       "nothing: lifecycle is carrying out the confirmed proposal",
	"nominated":                "nothing: it is considered once the pods that are expected on it have come",
	"do-not-disrupt":           "remove the annotation karpenter.sh/do-not-disrupt from the node or its NodeClaim",
	"pod-do-not-disrupt":       "remove the annotation karpenter.sh/do-not-disrupt from the pod, or set terminationGracePeriod in the NodePool for drift",
	"pod-disruption-budget":    "let the PodDisruptionBudget allow an eviction: more ready replicas, or a larger maxUnavailable",
	"static-nodepool":          "reduce the replicas of the static NodePool; its nodes are not consolidated",
	"consolidation-disabled":   "set consolidateAfter of the NodePool to a duration instead of Never",
	"consolidate-after":        "wait, or shorten consolidateAfter of the NodePool",
	"consolidation-policy":     "set consolidationPolicy of the NodePool to WhenEmptyOrUnderutilized",
	"price-unknown":            "publish a price for the instance type: check the catalog service and NodeOverlays",
	"budget":                   "raise spec.disruption.budgets of the NodePool or its rate, or wait; joist budgets shows when that changes",
	"healthy":                  "nothing: repair removes unhealthy nodes only",
	"do-not-repair":            "remove the annotation karpenter.sh/do-not-repair",
	"repair-standalone":        "nothing: repair replaces only nodes of NodePools",
	"repair-unbounded":         "set terminationGracePeriod in the NodePool, or a limit in the repair policy, so that the drain ends",
	"repair-breaker":           "find why so many nodes are unhealthy at once: repair waits until fewer are",
	"repair-unplaceable":       "let a NodePool launch a node for its pods: explain one of them",
	"canary":                   "wait until the replacements of this wave have been ready for long enough",
	"drift-halted":             "correct the NodePool or EC2NodeClass whose replacements fail, and resume as the detail says",
	"min-saving":               "lower the annotation joist.sh/consolidation-min-saving of the NodePool",
	"payback":                  "lengthen the annotation joist.sh/consolidation-payback of the NodePool",
	"cool-down":                "wait, or shorten the annotation joist.sh/consolidation-cooldown of the NodePool",
	"evictions-per-hour":       "wait, or raise the annotation joist.sh/consolidation-evictions-per-hour of the NodePool",
	"policy-unreadable":        "correct the annotation of the NodePool that the detail names",
	"not-empty":                "nothing: another method would have to remove it",
	"capacity-buffer":          "reduce the CapacityBuffer that uses its free capacity",
	"not-drifted":              "nothing: it matches its NodePool and EC2NodeClass",
	"not-expiring":             "nothing: it is not due yet",
	"no-replacement":           "let a NodePool launch a node for its pods: explain one of them",
	"static-at-limit":          "raise limits.nodes of the static NodePool, or turn on the feature gate TerminateFirstDrift",
	"static-reservations-full": "free capacity in the reservations, or turn on the feature gate TerminateFirstDrift",
	"pods-unplaceable":         "let its pods fit elsewhere: more free capacity, or a NodePool that accepts them",
	"scheduler-placement":      "more free capacity on the other nodes: kube-scheduler would place its pods so that some are left without a node",
	"no-saving":                "nothing: no cheaper way to run its pods is known; cheaper types in the NodePool, or smaller requests, would change that",
	"more-nodes":               "nothing: more nodes than are removed would be needed",
	"same-type":                "nothing: the replacement would have the same instance type",
	"spot-to-spot":             "turn on the feature gate SpotToSpotConsolidation and allow 15 cheaper instance types",
	"min-values":               "lower minValues of the NodePool, or allow more instance types",
	"balanced":                 "set consolidationPolicy of the NodePool to WhenEmptyOrUnderutilized: Balanced rejects moves that save too little",
	"receives-pods":            "nothing: it will receive pods from nodes being removed",
	"lower-priority":           "nothing: commands that save more come first; it is considered again with the next snapshot",
	"proposal-overturned":      "nothing: lifecycle first removes its earlier proposal",
}
