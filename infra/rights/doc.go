// Package rights builds the IAM policies of all parts of Joist from the names of a cluster.
// It is pure and does not import the CDK; package stack attaches the policies.
//
// The rules, each with a test:
//
//   - A role has exactly the permissions in its service's README.
//   - Only the launcher may change EC2: by six actions, on resources that have the cluster's
//     tags or are created with them.
//   - No permission to write has the resource "*".
//   - A queue, the bus and the bucket explicitly deny writers that are not on their list, so
//     a permission granted elsewhere in the account by mistake cannot forge a message.
//
// deploy/docs/attacks.md lists the attacks that these policies and others allow.
package rights
