// Package soak runs Joist under a mixed load for minutes to hours: Deployments are scaled up and down, EC2 warns spot
// instances, nodes expire, drift and are consolidated, while services are killed, the API server is restarted and
// connections to AWS are cut. Joist runs as it is deployed (package testbed).
//
// The test checks that the services' memory and goroutines do not grow, that each event is handled or in a dead-letter
// queue that is replayed at the end, that no instance without a NodeClaim lives longer than 90 seconds, and that no pod
// is pending longer than a bound. Random choices come from a printed seed.
package soak
