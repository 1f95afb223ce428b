// Package karpenterbaseline plans a benchmark's scenario with upstream Karpenter's
// scheduler, and consolidates one with upstream's consolidation, so that others can
// be compared with it.
//
// The scheduler is the released module, unmodified and driven as its provisioner
// drives it: the same validation of pods, topology, scheduler, solve and
// truncation, and for the price of a node the same filters that the AWS provider
// puts before a launch. Around it is as little as possible: an in-memory client
// in place of informers, which holds only what is bound to nodes (pending pods
// would be listed and ignored), no events and no logs.
//
// What is measured is solving alone. Building the topology and the scheduler is
// setting up, as in upstream's own benchmark, and sorting the types of each claim
// by price for truncation comes afterwards, although production waits for both.
package karpenterbaseline
