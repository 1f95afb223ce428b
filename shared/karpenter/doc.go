// +groupName=karpenter.sh
// +versionName=v1
// +kubebuilder:object:generate=true

// Package karpenter contains the API of Karpenter v1: NodePool, NodeClaim and NodeOverlay (group karpenter.sh),
// EC2NodeClass (group karpenter.k8s.aws) and CapacityBuffer (group autoscaling.x-k8s.io), with their labels,
// annotations, taints, finalizers and condition names.
//
// A cluster can switch between Karpenter and Joist without changes to its objects. Four invariants follow:
//
//   - every JSON field of the v1.15 custom resources is here under the same name, so decoding and encoding lose nothing;
//   - durations keep the user's spelling (720h stays 720h), so GitOps tools see no difference;
//   - Go names and the order of fields equal Karpenter's if they are hashed, because the hash reads names in
//     field order: both give the same drift hashes;
//   - the package uses no clock, no randomness and no network.
//
// It imports only k8s.io/api, k8s.io/apimachinery, the JSON type of k8s.io/apiextensions-apiserver and the hash library,
// so the pure packages can use these types without a Kubernetes client. The manifests under
// deploy/charts/joist-crd/files are generated from this package.
package karpenter

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object paths=.
//go:generate go run ./internal/crdgen ../../deploy/charts/joist-crd/files
