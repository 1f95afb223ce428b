// Package planning has the documents of planning and the algebra of label requirements.
//
// The watcher writes Snapshots and Batches, the planner answers a Batch with a Plan, and
// disruption and the simulator work on Results. These documents are JSON, and their form
// is checked against documents of earlier versions. Requirements and Values decide which
// labels a node may have.
//
// The package computes nothing about EC2 and places no pod: package instancetypes has the
// instance types as the nodes of an EC2NodeClass would be, and package solver places pods.
package planning
