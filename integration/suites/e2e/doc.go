// Package e2e plays a person's day with Joist as it is deployed: seven binaries
// between a real Kubernetes control plane and AWS's protocols on a loopback port
// (package testbed says what of it is real).
//
// A NodePool and an EC2NodeClass are applied, a Deployment goes 0→5, AWS takes a
// spot instance back, the Deployment goes to 0. While the instance is replaced,
// all of Joist is killed at once and started anew. It is played twice, with the
// services that may run under Lambda once as functions and once as pollers of
// their queues.
package e2e
