// Package testbed is what a test of Joist as it is deployed stands on: every
// service its own binary in its own process. On one side they meet a real
// Kubernetes control plane, on which helm installed the chart, with its rights and no more; on the
// other AWS's own protocols on a loopback port (fakeaws), on the real clock.
//
// What is not real: EC2 boots in a second, ticks come more often than EventBridge
// Scheduler can, launch templates grow old in seconds, and a machine that boots
// becomes a node by the world's hand, which reads its user data as the machine
// would; from then on kwok moves it.
//
// A World belongs to one test, ends with it, and is driven by one goroutine;
// what runs beside it tells its errors to Wait.
package testbed
