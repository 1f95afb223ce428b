// Package instancetypes computes the instance types that the nodes of an EC2NodeClass can be: their
// labels, the capacity for pods, and their offerings.
//
// New reads the catalogue for the classes of a snapshot. It applies NodeOverlays, capacity
// reservations, placement groups, free addresses of subnets, unavailable offerings and the memory that
// running nodes of a type and image report. The result is the only input of package solver that
// describes EC2.
package instancetypes
