// Package topology names what carries a cluster's events: its queues with their
// dead-letter queues, its bus, the rules on both buses, and the ticks. It is the
// one place that knows; the CDK app makes what it says, the fake AWS of the tests is
// wired by it, `joist doctor` compares an account with it, and `joist queues` lists it.
//
// The invariants: everything belongs to one cluster and bears its name, so that two
// clusters of an account never share a queue or a right; every queue has one reader
// and a closed list of senders; and a plan is either whole or refused, with every name
// within what AWS accepts.
package topology
