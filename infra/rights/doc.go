// Package rights says what every part of Joist may do in AWS: policy documents as
// values, from the names of a cluster and nothing else. It is pure and knows no CDK;
// the app attaches what it says.
//
// The invariants, each with its test:
//
//   - a role has the rights that its service's card names, and no other;
//   - of EC2, six actions change anything, all are the launcher's, and each is bound to
//     what carries the cluster's tags or is about to;
//   - no right to write has the resource "*";
//   - a queue, the bus and the bucket refuse, in so many words, who is not on their own
//     list of writers: a right that somebody is given by mistake elsewhere in the account
//     does not forge an order.
//
// deploy/docs/attacks.md lists the attacks that these policies and others allow.
package rights
