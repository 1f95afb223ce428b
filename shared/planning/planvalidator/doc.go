// Package planvalidator checks whether a plan or a consolidation is valid, and computes a lower bound of its
// price. It reads the files of the planning benchmark, builds the cluster that the plan would make, and checks
// every rule of Kubernetes and of the NodePools on that final state. A consolidation is carried out command by
// command. Package planningtest writes such documents for the batches and results of unit tests. The package shares no code with the planner, not even the decoding, so no mistake can be common to
// both. A reported violation is certain: a rule that depends on the order of binding is broken in every order in
// which pods without required affinity come first, and domains of a spread include domains that could be launched,
// as in Karpenter. A result that omits what a rule needs is a violation. Pods bound before the plan are not
// checked. Volumes are not in the files, and CheckDevices checks allocated devices on their own; daemons use resources and host ports but take no part
// in affinity and spread.
package planvalidator
