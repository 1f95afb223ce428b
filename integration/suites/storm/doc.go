// Package storm puts a cluster of hundreds of nodes through a day on which EC2
// takes a third of them back: up from nothing, a minute in which AWS warns 30 % of
// the spot instances, the drains with PodDisruptionBudgets and pods that must not
// be disrupted, and down to nothing. Joist runs as it is deployed (package
// world); Kubernetes' own scheduler, controllers and eviction API are real.
//
// The test judges what a person would: nothing is lost, no budget is broken, no
// protected pod goes before it must, every pod that was drained runs again, and at
// the end no node, instance, launch template or message is left. What it measures
// is a Report: a sample of the cluster four times a second and the story of each
// notice, written as JSON and drawn as one SVG.
package storm
