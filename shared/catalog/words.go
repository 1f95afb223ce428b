package catalog

import "github.com/joist-autoscaler/joist/shared/karpenter"

// Capacity types.
const (
	OnDemand = karpenter.CapacityTypeOnDemand
	Spot     = karpenter.CapacityTypeSpot
	Reserved = karpenter.CapacityTypeReserved
)

// Architectures and operating systems in Kubernetes' spelling.
const (
	AMD64   = karpenter.ArchitectureAMD64
	ARM64   = karpenter.ArchitectureARM64
	Linux   = "linux"
	Windows = "windows"
)
