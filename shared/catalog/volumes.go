package catalog

import "github.com/joist-autoscaler/joist/shared/karpenter"

// EBSDriver is the CSI driver whose volumes EC2 bounds.
const EBSDriver = "ebs.csi.aws.com"

const (
	// commonVolumes is what EC2 says of most Nitro types: 28 attachments of any kind, one of which is the first network
	// interface.
	commonVolumes = 27
	// warmENIs are attached when the driver counts: the first, and the one that the VPC CNI keeps ready.
	warmENIs = 2
)

// VolumeLimit is how many EBS volumes pods may have on a node of type t. It foresees what the EBS driver will
// tell Kubernetes once it runs there, which is what the scheduler then goes by: what EC2 says of the type ("Amazon EBS
// volume limits" in its user guide), less the node's own disks, and less its further network interfaces where they share
// the limit. Never below 1, as the driver has it.
func VolumeLimit(t InstanceType, cfg NodeConfig) int64 {
	limit := t.Volumes
	if limit.Count == 0 {
		limit.Count = commonVolumes
	}
	left := limit.Count - ownVolumes(cfg)
	if !limit.Dedicated {
		left -= max(min(warmENIs, t.Network.ENIs), int64(len(cfg.NetworkInterfaces)), 1) - 1
	}
	return max(1, left)
}

// ownVolumes are the disks that a node boots with. What the image brings is there whether the class names it or not.
func ownVolumes(cfg NodeConfig) int64 {
	var named int64
	for _, device := range cfg.BlockDevices {
		if device.EBS != nil {
			named++
		}
	}
	least := int64(1)
	if cfg.AMIFamily == karpenter.AMIFamilyBottlerocket {
		least = 2 // The system's disk and the pods'.
	}
	return max(least, named)
}
