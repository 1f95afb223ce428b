// Package explain answers why Joist decided as it did, from the documents behind a decision: why a pod is
// pending or on its node, why a node has its instance type, why a node stays or goes, and what a NodePool
// accepts.
//
// It decides nothing itself. It calls the functions that the services call (planner.Plan,
// disruption.Evaluate, the budgets of joist budgets) with the recorded input, and compares the result
// with the recorded one byte by byte (Reproduction). Every edit that it suggests for a pod was planned
// again with the edit.
//
// All functions are pure: documents are read by package records.
package explain
