// Package userdata reads an instance's user data as the machine itself would:
// it finds what makes the machine join a cluster as a node.
//
// It is the reader that keeps the writer honest. Models of kubelets boot from
// it and tests join nodes from it, so a label that launchspec writes in a place
// where no machine looks is a label that no node gets.
//
// The invariant: Parse refuses what the machine would refuse, and says what
// keeps the machine from joining.
package userdata
