// Package memworkload models the controllers of Kubernetes over memcluster: those of
// Deployments and DaemonSets, the scheduler, kubelets, the node lifecycle controller and
// the garbage collectors.
//
// Kubernetes.Step runs one pass of all of them in a fixed order. Next is when a pass has
// something to do although nothing changes. The invariants:
//
//   - The same server and steps give the same names and bindings. Names and UIDs are
//     derived, not random.
//   - The scheduler uses Kubernetes' libraries and none of Joist's, so it checks Joist's
//     plans independently. It knows resources, selectors, node affinity, taints and host
//     ports, and neither topology nor volumes.
//   - An instance becomes a Node only through its user data.
package memworkload
