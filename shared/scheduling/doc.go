// Package scheduling decides where pods go: requirement algebra, taints,
// resources and packing, over documents that hold every input.
//
// The invariants: it is pure, so that the same batch gives the same plan, byte
// for byte; it never plans above a NodePool's limits; and for every pod that it
// cannot place it says which rule of which NodePool refused.
package scheduling
