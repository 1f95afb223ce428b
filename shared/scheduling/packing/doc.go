// Package packing decides which pods share which nodes, and what each node is
// bought as. It knows numbers only: amounts of resources, prices, and sets of
// columns. What a label, a taint or a zone is has been decided before.
//
// The idea: resources have prices. A small linear program (bound.go) finds what
// a unit of each resource is worth when every node is bought in the cheapest way
// and filled to the brim; the sum over all pods is a bound that no plan can beat,
// and the worth of the pods on a node, divided by the node's price, says how good
// the node is. Nodes are opened best first (greedy.go), each filled so that its
// resources run out together (fill.go); afterwards the worst are emptied and
// packed anew (improve.go), and each is bought as the cheapest type that holds
// what it got.
//
// Invariants:
//   - The same Problem and lots give the same bins: nothing depends on time,
//     chance, or the order of a map. Effort is counted in steps, never in seconds.
//   - A bin always holds its parts: in every resource, by every rule, and inside of
//     its pool's limits with the largest type that it may become.
//   - Lots are never lost: what is not in a bin or on a node is in Left.
package packing
