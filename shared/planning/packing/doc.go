// Package packing decides which pods share which nodes, and how each node is bought. It only knows
// numbers: amounts of resources, prices, and sets of candidates. The caller has already evaluated
// labels, taints and zones.
//
// The method uses shadow prices of resources. A small linear program (shadowprices.go) computes the
// value of a unit of each resource if every node is bought as cheaply as possible and filled
// completely. The sum over all pods is a lower bound on the cost of any plan (bound.go), and the
// value of the pods on a node, divided by the node's price, rates the node. The packer opens the
// best node first (greedy.go), and fills each node so that its resources run out together
// (fill.go). It tries several orders of the pod groups while the cost is far above the bound, or, if
// pods that must not share a node decide the number of nodes, several prices of a separate node
// (hostprice.go). It spreads a plan of one or two nodes over more if that costs little (resilience.go). It merges
// poorly used nodes in pairs (merge.go), places pods with affinity to other pods (affinity.go) and
// the pods that stages left over (placeone.go) one by one, and buys each node as the cheapest type
// that holds its pods (choice.go). A caller may also place pods one by one, each where it fits at
// that moment (single.go).
//
// Invariants:
//   - The same Problem and pod groups give the same bins: nothing depends on time, random
//     numbers or map order. Effort is counted in steps, not in seconds.
//   - A bin always holds its pods: in every resource, under every rule, and within its
//     pool's limits, even as the largest type that it may become.
//   - No pod is lost: a pod that is neither in a bin nor on a node is counted by
//     CountUnplaced, until the caller gives it up with DropGroup.
package packing
