// Package e2e runs Joist as it is deployed through a typical day: seven binaries between
// a real Kubernetes control plane and AWS's protocols on a loopback port (package testbed
// describes which parts are real).
//
// The test applies a NodePool and an EC2NodeClass, scales a Deployment from 0 to 5,
// interrupts a spot instance, and scales to 0. While the instance is replaced, it kills
// and restarts all of Joist. It runs twice: the services that support Lambda run once as
// functions behind AWS's runtime interface emulator, and once as pollers of their queues.
package e2e
