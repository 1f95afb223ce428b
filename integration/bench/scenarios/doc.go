// Package scenarios generates the benchmark's scenarios: NodePools, instance types and
// pending pods, of a kind and a size.
//
// A kind consists of a few distributions that are defined in the code: the replicas of a
// deployment, the requests of a pod, and the share of deployments with each constraint.
// Invariants: kind, size and seed determine every byte; the only input is the embedded
// catalogue; and no planner is called, so none can influence its benchmark.
package scenarios
