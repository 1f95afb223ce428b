// Package devices allocates devices to ResourceClaims as kube-scheduler and the drivers will do it:
// it decides on which nodes, and on which instance types of a new node, a pod's claims can be met.
// It writes nothing: kube-scheduler allocates claims when the pod is bound.
//
// Devices are published in ResourceSlices (pool.go), or will be published by the nodes of an
// instance type (instancetype.go). The Allocator searches devices for the claims of one pod on one
// site, which is an existing node or a new one (search.go). A new node has many possible instance
// types: each gets a search of its own, and types without a solution are excluded. A committed
// allocation takes its devices from later searches (usage.go): published devices from all sites,
// and devices of an instance type only from the same site and type. Of shared counters and
// capacities a site takes the maximum over its types until types are released.
//
// Semantics are those of Karpenter's pkg/scheduling/dynamicresources. Differences: a claim that is
// allocated on one node by name is usable only there, an instance type whose devices exceed the
// maximum of a claim fails instead of getting fewer devices, and the search is limited in steps.
//
// Invariants:
//   - The same input in any order gives the same allocation: nothing depends on time or map order.
//   - No device is allocated twice, no counter and no capacity exceeds its total.
package devices
