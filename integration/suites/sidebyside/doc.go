// Package sidebyside runs Karpenter with its kwok provider, and then Joist, with the same load, and compares what the load
// costs, how long pods wait and how often they are evicted.
//
// The load is a day of Deployments whose replicas follow public traces of CPU usage: web applications that of Azure's virtual
// machines, queue workers that of Google's clusters (testdata/day.csv has one day of both). Nightly batches and rolling updates
// are added at fixed times. A seed draws the differences between the applications. The day passes in minutes: everything that
// happens by the clock of the controllers, such as batching, boot times and consolidateAfter, takes a larger part of it than
// of a real day.
//
// Each side has its own control plane (package testbed) with Kubernetes's scheduler, controllers and eviction API. Both have
// the same NodePool, and the same instance types with the same prices and allocatable resources: those of Joist's embedded
// catalogue, which the test also writes as a file for the kwok provider. A node joins at the same time after its launch.
package sidebyside
