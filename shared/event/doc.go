// Package event is the contract between Joist's services: the messages on the queues and on the bus.
//
// # The system
//
// A watcher reads Kubernetes and sends batches of unschedulable pods to a planner. The planner publishes a plan.
// Lifecycle checks the plan in its admission, writes NodeClaims and requests instances from the launcher. The
// launcher calls EC2 and publishes the results. Interruption publishes AWS interruption notices, disruption proposes
// nodes to remove, and catalog publishes EC2's offerings and the existing instances. Commands are sent to the
// consumer's queue; facts go to the bus.
//
// # The invariants
//
//   - An envelope is a CloudEvents 1.0 structured JSON object. It maps one to
//     one onto an EventBridge entry: source, detail-type (type) and detail (the
//     whole envelope).
//   - Ids are derived from the type, the cluster and the body's key, never
//     random: a repeated fact has the same id.
//   - Every envelope expires; a consumer drops and counts an expired one.
//   - Bodies that can grow are documents in a store, and the message carries
//     the reference (Ref).
//   - Decode is strict and total: any bytes give an envelope or an error of
//     kind poison, never a panic, and limits are checked before decoding.
//   - A type includes its major version; golden files are added and never edited.
//
// The package imports only the standard library and shared/fault, so that every package may import it.
package event
