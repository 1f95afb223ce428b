// Package memworkload is a model of the parts of Kubernetes that act: the
// controllers of Deployments and DaemonSets, the scheduler, the kubelets, the
// node lifecycle and the collectors of garbage, in small steps over memcluster.
//
// Kubernetes.Step makes one pass of them all, in a fixed order; Next says when
// time alone will give the next pass something to do. The invariants:
//
//   - Same server, same steps: same names, same bindings. Names and UIDs are
//     derived, nothing is drawn.
//   - The scheduler judges with Kubernetes' own libraries and not with ours, so
//     it is an independent judge of what Joist plans. It knows resources,
//     selectors, node affinity, taints and host ports, not topology or volumes.
//   - A machine becomes a Node only through its user data, as a real one.
package memworkload
