// Package e2e runs Joist as it is deployed: every service is its own binary in
// its own process. On one side they meet a real Kubernetes control plane, with
// the rights of deploy/rbac and no more; on the other AWS's own protocols on a
// loopback port (fakeaws), on the real clock.
//
// The scenario is a person's: a NodePool and an EC2NodeClass are applied, a
// Deployment goes 0→5, AWS takes a spot instance back, the Deployment goes to 0.
// While the instance is replaced, all of Joist is killed at once and started
// anew. It is played twice, with the services that may run under Lambda once as
// functions and once as pollers of their queues.
//
// What is not real: EC2 boots in a second, ticks come more often than EventBridge
// Scheduler can, launch templates grow old in seconds, and a machine that boots
// becomes a node by the test's hand, which reads its user data as the machine
// would; from then on kwok moves it.
package e2e
