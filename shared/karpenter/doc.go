// +groupName=karpenter.sh
// +versionName=v1
// +kubebuilder:object:generate=true

// Package karpenter holds the words that users of Karpenter v1 already write: NodePool, NodeClaim and
// NodeOverlay (group karpenter.sh), EC2NodeClass (group karpenter.k8s.aws) and CapacityBuffer (group autoscaling.x-k8s.io), with their labels, annotations, taints, finalizers and condition names.
//
// The idea is that an object may pass from Karpenter to Joist and back without either noticing. Four invariants follow:
//
//   - every JSON field of the v1.14 custom resources is here under the same name, so decoding and encoding lose nothing;
//   - durations keep the spelling that the user chose (720h stays 720h), so GitOps tools see no difference;
//   - Go names and the order of fields equal upstream's wherever a hash walks over them, because the hash reads names in
//     field order: drift hashes written by either side are equal;
//   - nothing here looks at a clock, draws a random number, or talks to a cluster.
//
// Only k8s.io/api, k8s.io/apimachinery and the hash library are imported, so the pure packages can use these types
// without dragging in a client. The manifests under deploy/charts/joist-crd/files are generated from this package.
package karpenter

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object paths=.
//go:generate go run ./internal/crdgen ../../deploy/charts/joist-crd/files
