// Package consolidation scales a cluster down, and measures how Joist consolidates it.
// Deployments fill a fleet and most of their pods are deleted, so the remaining pods are
// scattered over expensive nodes. Joist runs as it is deployed (package testbed);
// Kubernetes's scheduler, controllers and eviction API are real.
//
// The test checks that the fleet becomes cheaper, close to the price of a new plan for
// the same pods; that pods are moved about once; that disrupted nodes never exceed the
// NodePool's budget, and unavailable pods never exceed their PodDisruptionBudgets; and
// that the cluster comes to rest. The result is a Report: four samples of the cluster per
// second, written as JSON and drawn as one SVG.
//
// The package also runs the same fleet in a model in steps of one second, with a
// scheduler that places pods as Kubernetes's does. This takes only seconds.
//
// It also replays a day with models and the service's decisions, and measures which moves
// a NodePool's thresholds avoid, and what they cost. And it replays the day of package
// sidebyside in the model, for Joist and for Karpenter's own code.
package consolidation
