// Package consolidation lets a cluster come apart, and watches Joist put it
// together again: Deployments fill a fleet, most of their pods go, and what is left
// is scattered over nodes that nobody would buy for it. Joist runs as it is deployed
// (package testbed); Kubernetes' own scheduler, controllers and eviction API are real.
//
// The test judges what a person would: the fleet becomes cheaper, close to what a
// fresh plan for the same pods costs, and pods are moved once or so for it; at no time
// do more nodes go than the NodePool's budget allows, or have fewer pods of an app than
// its PodDisruptionBudget keeps; and it comes to rest. What it measures is a Report: a
// sample of the cluster four times a second, written as JSON and drawn as one SVG.
//
// The same fleet comes apart in a model as well, second by second, with a scheduler that
// places pods as Kubernetes' does: what becomes of it is told in seconds.
//
// Beside it a day is replayed with models alone, and with the decisions of the service:
// what a NodePool's thresholds spare, and what they cost.
package consolidation
