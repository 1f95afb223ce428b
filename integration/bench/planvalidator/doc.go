// Package planvalidator says whether a plan is valid, and below which price no plan can be.
//
// It reads a scenario and a result, the two files of the planning benchmark, and
// looks at the cluster that the plan would make: every node with its labels and
// its pods. Each rule that Kubernetes has for a pod on a node is asked of that
// final state, with Kubernetes' own matching where there is a library for it.
// The judge knows nothing of how a plan is found and shares no code with the
// planner, not even the decoding, so that no misreading can be common to both.
// A consolidation is judged by carrying out its commands one by one, each of them
// as a plan for the pods that it moves.
//
// The invariants: a violation that is reported is certain, which for rules that
// depend on the order of binding means that no order satisfies them in which the pods
// without required affinity come before those that have some, and for the
// domains of a spread that those which could be launched count as well, as they
// do for Karpenter; a result that leaves out what a rule needs is a
// violation, never a pass; and what was bound before the plan is given, not
// judged.
//
// Left out, because the files cannot say them: volumes and resource claims.
// Daemons take resources and host ports, and no part in affinity and spread.
package planvalidator
