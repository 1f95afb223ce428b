// Package event is the contract between Joist's services: what travels on the
// queues and on the bus, and nothing else.
//
// # The system
//
// A watcher reads Kubernetes and sends batches of unschedulable pods to a
// planner; the planner publishes a plan; lifecycle lets the plan through the one
// door, writes NodeClaims and asks the launcher for instances; the launcher
// calls EC2 and publishes how that settled; interruption publishes what AWS is
// about to take away; disruption proposes what to remove; catalog publishes
// what EC2 offers and what exists. Commands travel point to point on a queue,
// facts go to the bus.
//
// # The invariants
//
//   - An envelope is a CloudEvents 1.0 structured JSON object. It maps one to
//     one onto an EventBridge entry: source, detail-type (type) and detail (the
//     whole envelope).
//   - Ids are derived from the type, the cluster and the body's key, never
//     random: the same fact said twice is the same event.
//   - Every envelope expires; a consumer drops it after that and counts it.
//   - Bodies that can grow are documents in a store, and the message carries
//     the reference (Ref).
//   - Decode is strict and total: any bytes give an envelope or an error of
//     kind poison, never a panic, and limits are checked before decoding.
//   - A type carries its major version; goldens are added and never edited.
//
// The package imports the standard library and shared/fault only, so that
// anything may import it.
package event
