package catalog

import "github.com/joist-autoscaler/joist/shared/karpenter"

// EBSDriver is the CSI driver whose volumes EC2 limits.
const EBSDriver = "ebs.csi.aws.com"

const (
	// commonVolumes is the limit of most Nitro types: 28 attachments of any kind, minus the first network interface.
	commonVolumes = 27
	// warmENIs are attached when the driver counts: the first, and the one that the VPC CNI keeps in reserve.
	warmENIs = 2
)

// VolumeLimit returns how many EBS volumes pods may have on a node of type t. It predicts the limit that the EBS
// driver will report to the scheduler: EC2's limit of the type ("Amazon EBS volume limits" in its user guide), minus
// the node's own disks, and minus its further network interfaces if they share the limit. It is at least 1, as in the
// driver.
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

// ownVolumes returns the number of disks with which a node boots. The image's own disks count even if the class does
// not list them.
func ownVolumes(cfg NodeConfig) int64 {
	var named int64
	for _, device := range cfg.BlockDevices {
		if device.EBS != nil {
			named++
		}
	}
	least := int64(1)
	if cfg.AMIFamily == karpenter.AMIFamilyBottlerocket {
		least = 2 // the system's disk and the pods' disk
	}
	return max(least, named)
}
