// Package storm interrupts a third of a cluster of hundreds of nodes: it scales up from
// zero, AWS warns 30 % of the spot instances within a minute, nodes are drained with
// PodDisruptionBudgets and protected pods, and the cluster scales to zero. Joist runs as
// it is deployed (package testbed); Kubernetes's scheduler, controllers and eviction API
// are real.
//
// The test checks that nothing is lost, no budget is violated, no protected pod is
// evicted early, every drained pod runs again, and at the end no node, instance, launch
// template or message is left. The result is a Report: four samples of the cluster per
// second and the course of each notice, written as JSON and drawn as one SVG.
package storm
