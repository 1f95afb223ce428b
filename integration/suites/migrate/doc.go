// Package migrate moves a cluster from Karpenter to Joist and back: Karpenter's own controller with
// its AWS provider, and the binaries of Joist, between a real Kubernetes control plane and AWS's
// protocols on a loopback port (package testbed describes which parts are real).
//
// Karpenter launches nodes. Joist is installed next to it and waits. Karpenter stops, and Joist adopts
// the nodes, launches more, and removes some. Then Joist stops and Karpenter adopts all nodes again. The move
// itself deletes and replaces nothing: NodeClaims, Nodes and instances are compared before and after
// each change of the controller. A spot node is interrupted at each stage. `joist migrate --check` runs at each stage.
//
// A second test converts a node group of Cluster Autoscaler while Joist runs.
package migrate
