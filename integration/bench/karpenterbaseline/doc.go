// Package karpenterbaseline plans a benchmark's scenario with upstream Karpenter's
// scheduler, and consolidates one with upstream's consolidation, as the baseline for
// comparisons.
//
// The scheduler is the released module, unmodified and called as its provisioner calls
// it: the same validation of pods, topology, scheduler, solve and truncation, and for a
// node's price the same filters that the AWS provider applies before a launch. Instead of
// informers there is an in-memory client, which has only pods that are bound to nodes (pending
// pods would be listed and ignored); there are no events and no logs.
//
// Only solving is measured. Building the topology and the scheduler is excluded as setup,
// as in upstream's own benchmark. Sorting each claim's types by price for truncation
// comes afterwards and is excluded, too, although production waits for both.
package karpenterbaseline
