package karpenter

import "slices"

// Labels of an instance type. Numbers are integers without a unit.
const (
	LabelInstanceHypervisor                   = AWSGroup + "/instance-hypervisor"                      // nitro, xen, or empty on bare metal
	LabelInstanceEncryptionInTransitSupported = AWSGroup + "/instance-encryption-in-transit-supported" // "true" or "false"
	LabelInstanceCategory                     = AWSGroup + "/instance-category"                        // c of c7gn.large
	LabelInstanceCapabilityFlex               = AWSGroup + "/instance-capability-flex"                 // "true" for c7i-flex.large
	LabelInstanceFamily                       = AWSGroup + "/instance-family"                          // c7gn of c7gn.large
	LabelInstanceGeneration                   = AWSGroup + "/instance-generation"                      // 7 of c7gn.large
	LabelInstanceSize                         = AWSGroup + "/instance-size"                            // large of c7gn.large
	LabelInstanceLocalNVME                    = AWSGroup + "/instance-local-nvme"                      // GB of built-in NVMe disks
	LabelInstanceCPU                          = AWSGroup + "/instance-cpu"                             // vCPUs
	LabelInstanceCPUManufacturer              = AWSGroup + "/instance-cpu-manufacturer"                // aws, intel, amd
	LabelInstanceCPUSustainedClockSpeedMHz    = AWSGroup + "/instance-cpu-sustained-clock-speed-mhz"   // MHz
	LabelInstanceMemory                       = AWSGroup + "/instance-memory"                          // MiB
	LabelInstanceEBSBandwidth                 = AWSGroup + "/instance-ebs-bandwidth"                   // sustained Mbit/s
	LabelInstanceNetworkBandwidth             = AWSGroup + "/instance-network-bandwidth"               // sustained Mbit/s
	LabelInstanceGPUName                      = AWSGroup + "/instance-gpu-name"                        // for example t4
	LabelInstanceGPUManufacturer              = AWSGroup + "/instance-gpu-manufacturer"                // for example nvidia
	LabelInstanceGPUCount                     = AWSGroup + "/instance-gpu-count"                       // GPUs
	LabelInstanceGPUMemory                    = AWSGroup + "/instance-gpu-memory"                      // MiB of one GPU
	LabelInstanceAcceleratorName              = AWSGroup + "/instance-accelerator-name"                // for example inferentia
	LabelInstanceAcceleratorManufacturer      = AWSGroup + "/instance-accelerator-manufacturer"        // for example aws
	LabelInstanceAcceleratorCount             = AWSGroup + "/instance-accelerator-count"               // accelerators
	LabelInstanceTenancy                      = AWSGroup + "/instance-tenancy"                         // default or dedicated
)

// Labels of an instance's location and purchase option.
const (
	LabelCapacityReservationID            = AWSGroup + "/capacity-reservation-id"            // of the reservation in which the instance runs
	LabelCapacityReservationType          = AWSGroup + "/capacity-reservation-type"          // default or capacity-block
	LabelCapacityReservationInterruptible = AWSGroup + "/capacity-reservation-interruptible" // "true" or "false"
	LabelPlacementGroupID                 = AWSGroup + "/placement-group-id"                 // of the instance's placement group
	LabelPlacementGroupPartition          = AWSGroup + "/placement-group-partition"          // the partition of that group, from 1
	LabelEC2NodeClass                     = AWSGroup + "/ec2nodeclass"                       // name of the class; users may not require it
	LabelTopologyZoneID                   = "topology.k8s.aws/zone-id"                       // for example use1-az1, the same zone in every account
)

// Values of the tenancy label.
const (
	TenancyDefault   = "default"
	TenancyDedicated = "dedicated"
)

// awsLabels are the well-known labels in the AWS domain.
var awsLabels = []string{
	LabelInstanceTenancy,
	LabelCapacityReservationType,
	LabelCapacityReservationID,
	LabelCapacityReservationInterruptible,
	LabelInstanceEncryptionInTransitSupported,
	LabelInstanceCategory,
	LabelInstanceHypervisor,
	LabelInstanceFamily,
	LabelInstanceGeneration,
	LabelInstanceLocalNVME,
	LabelInstanceSize,
	LabelInstanceCPU,
	LabelInstanceCPUManufacturer,
	LabelInstanceCPUSustainedClockSpeedMHz,
	LabelInstanceMemory,
	LabelInstanceEBSBandwidth,
	LabelInstanceNetworkBandwidth,
	LabelInstanceGPUName,
	LabelInstanceGPUManufacturer,
	LabelInstanceGPUCount,
	LabelInstanceGPUMemory,
	LabelInstanceAcceleratorName,
	LabelInstanceAcceleratorManufacturer,
	LabelInstanceAcceleratorCount,
	LabelInstanceCapabilityFlex,
	LabelPlacementGroupID,
	LabelPlacementGroupPartition,
}

// AWSLabels returns the well-known labels in the AWS domain, in the order of the schema's rules.
func AWSLabels() []string { return slices.Clone(awsLabels) }
