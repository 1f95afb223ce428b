// Package scenarios makes the benchmark's scenarios: NodePools, instance types
// and pods that wait, of a kind and a size.
//
// The idea is that a kind is a few distributions, written down where they can
// be read: how many replicas a deployment has, what a pod asks for, and which
// constraints how many deployments carry. The invariants: kind, size and seed
// decide every byte; nothing is read but the embedded catalogue; and no
// planner is asked for anything, so that none can shape what it is measured on.
package scenarios
