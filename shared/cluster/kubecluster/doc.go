// Package kubecluster implements cluster.Client and cluster.Feed with client-go.
//
// The invariants:
//
//   - It retries nothing. Every answer of the server, and a missing answer, becomes a
//     kind of fault, and the caller decides.
//   - A write that may have happened is fault.Unknown. It did not happen only if the
//     server answered so or the connection failed.
//   - An error for a missing right names the verb, the resource and the API group.
package kubecluster
