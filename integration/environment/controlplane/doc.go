// Package controlplane runs a real Kubernetes control plane for tests: etcd,
// kube-apiserver, kube-controller-manager, kube-scheduler, and kwok in place of
// kubelets. There is no container runtime, no virtual machine and no root.
//
// What passes against it has met the true API server's validation, defaulting,
// conflicts, watches and access rules, and the true scheduler's opinion, none
// of which a fake client has. What it cannot show is a container: kwok moves
// pods and nodes through their phases, and nothing ever runs.
//
// The five programs are one executable that Build compiles from the nested
// module "binary" into a cache, once per version of its sources. Start runs
// them as five processes on loopback ports of their own, so that test packages
// run side by side without knowing of each other.
//
// Invariants:
//   - Start returns a cluster in which a pod can be created, or an error that
//     carries the end of the log of the program which failed.
//   - When the process that called Start ends, however it ends, the five
//     programs end too; files that it could not remove are removed by the next
//     Start on the machine.
//   - Nothing listens on an address other than 127.0.0.1.
package controlplane
