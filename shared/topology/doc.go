// Package topology defines the names of a cluster's AWS resources for events: its queues with their DLQs,
// its bus, the rules on both buses, and the ticks. The CDK app creates them, the fake AWS of the tests is
// wired by them, `joist doctor` compares an account with them, and `joist queues` lists them.
//
// The invariants: every resource belongs to one cluster and has its name, so that two clusters of an account never
// share a queue or a permission; every queue has one consumer and a fixed list of senders; and a plan is either
// complete or an error, with every name within AWS's limits.
package topology
