// Package testbed runs Joist as it is deployed, for tests: each service is its own binary in its own process,
// installed by Helm on a real Kubernetes control plane with the rights of the chart, and uses AWS's own protocols
// on a loopback port (package fakeaws) in real time. Not real are: EC2 boots in a second, ticks come more often
// than EventBridge Scheduler sends them, launch templates expire in seconds, and the test bed reads user data and
// registers nodes; kwok then updates them. A TestBed belongs to one test, ends with it, and is used by one
// goroutine. Errors of background work fail the next WaitUntil.
package testbed
