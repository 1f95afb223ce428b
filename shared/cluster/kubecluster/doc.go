// Package kubecluster is cluster.Client and cluster.Cache before a real
// Kubernetes API server, over client-go.
//
// The invariants:
//
//   - Nothing is retried here. What the server said, or that it said nothing,
//     becomes a kind of fault; the caller decides.
//   - A write that may have happened is fault.Unknown. Only an answer of the
//     server, or a connection that never came about, says otherwise.
//   - A right that is missing names itself: verb, resource and API group.
package kubecluster
