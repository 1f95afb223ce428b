// Package cli runs the operator commands end to end against the fake AWS, with the queues
// and rules of shared/topology: joist queues, joist dead, joist replay and joist doctor.
// DLQ messages are created as in production: by a host that moves them, by SQS
// after too many receives, and by a rule that could not deliver.
package cli
