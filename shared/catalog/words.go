package catalog

import "github.com/joist-autoscaler/joist/shared/karpenter"

// Capacity types.
const (
	OnDemand = karpenter.CapacityTypeOnDemand
	Spot     = karpenter.CapacityTypeSpot
	Reserved = karpenter.CapacityTypeReserved
)

// Architectures and operating systems, as Kubernetes writes them.
const (
	AMD64   = karpenter.ArchitectureAMD64
	ARM64   = karpenter.ArchitectureARM64
	Linux   = "linux"
	Windows = "windows"
)
