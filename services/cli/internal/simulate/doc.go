// Package simulate answers what-if questions about nodes from files, without a cluster:
//
//   - Plan plans nodes for the pods of manifests.
//   - Consolidate repeats disruption on a Fleet until nothing changes.
//   - RemoveNodes and InterruptSpotNodes remove nodes at once.
//   - Change.Simulate changes NodePools and EC2NodeClasses and then consolidates.
//
// It decides nothing itself. It calls the functions that the services call:
// solver.Solve and launchspec.Build for a plan, solver.NewSimulation for a removal,
// drift.Reason for drift, and the decision of disruption that the caller passes in. So its
// answers are what the services would do with the same input.
//
// Values that only a cluster knows (subnets, images, an instance profile, pods in flight) are
// assumed. Every assumption is listed in the result.
package simulate
