// Package controlplane runs a real Kubernetes control plane for tests: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, and kwok instead of kubelets.
// It needs no container runtime, no virtual machine and no root.
//
// Tests that use it run against the real API server's validation, defaulting, conflicts,
// watches and RBAC, and against the real scheduler; a fake client has none of these. It
// runs no containers: kwok only moves pods and nodes through their phases.
//
// The five programs are one executable that Build compiles from the nested module
// "binary" into a cache, once per version of its sources. Start runs them as five
// processes on separate loopback ports, so test packages can run in parallel.
//
// Invariants:
//   - Start returns a cluster in which a pod can be created, or an error with the end of
//     the failed program's log.
//   - When the process that called Start ends for any reason, the five programs end too.
//     The next Start on the machine removes files that it could not remove.
//   - The programs listen only on 127.0.0.1.
package controlplane
