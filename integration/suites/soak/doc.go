// Package soak runs Joist under a mixed load for minutes to hours: Deployments are scaled up and down, EC2 warns spot
// instances and ends others without a warning, zones have no capacity, nodes expire, drift and are consolidated, while
// services are killed, the API server is restarted, AWS fails, and connections to AWS are cut. Joist runs as it is deployed
// (package testbed).
//
// The test checks that the services' memory, goroutines and open files do not grow, that each event is handled or in a
// DLQ that is replayed at the end, that no instance, NodeClaim or Node is without the others for more than 90
// seconds, that a warned node is drained before EC2 ends it, that no pod is pending longer than a bound, and that no service
// logs an error or ends by itself except while the API server starts. Services are killed in the first half only, because a
// process must live long enough to show that it grows. Random choices come from a printed seed.
package soak
