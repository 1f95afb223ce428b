// Package packing decides which pods share which nodes, and what each node is
// bought as. It knows numbers only: amounts of resources, prices, and sets of
// columns. What a label, a taint or a zone is has been decided before.
//
// The idea: resources have prices. A small linear program (worth.go) finds what a
// unit of each resource is worth when every node is bought in the cheapest way and
// filled to the brim; the sum over all pods is a bound that no plan can beat
// (bound.go), and the worth of the pods on a node, divided by the node's price, says
// how good the node is. Nodes are opened best first (greedy.go), each filled so that
// its resources run out together (fill.go). Several orders of the lots are tried
// while the plan is far from the bound, and a plan that stands on one or two nodes is
// spread out where that costs little (resilience.go). Nodes that give little for
// their price are merged in pairs (merge.go), pods that must stand beside others and
// what stages left over are placed one by one (company.go, grow.go), and each node is
// bought as the cheapest type that holds what it got (choice.go). A caller may place
// pods singly instead, each where it fits at that moment (single.go).
//
// Invariants:
//   - The same Problem and lots give the same bins: nothing depends on time,
//     chance, or the order of a map. Effort is counted in steps, never in seconds.
//   - A bin always holds its parts: in every resource, by every rule, and inside of
//     its pool's limits with the largest type that it may become.
//   - Lots are never lost: what is not in a bin or on a node is in Left, until the
//     caller takes it back with Drop.
package packing
