package karpenter

import "k8s.io/apimachinery/pkg/api/resource"

// BlockDeviceMapping is a disk of an instance.
type BlockDeviceMapping struct {
	// Device name, for example /dev/xvda.
	// +optional
	DeviceName *string `json:"deviceName,omitempty"`
	// The EBS volume of the device.
	// +kubebuilder:validation:XValidation:message="snapshotID or volumeSize must be defined",rule="has(self.snapshotID) || has(self.volumeSize)"
	// +kubebuilder:validation:XValidation:message="snapshotID must be set when volumeInitializationRate is set",rule="!has(self.volumeInitializationRate) || (has(self.snapshotID) && self.snapshotID != '')"
	// +optional
	EBS *BlockDevice `json:"ebs,omitempty"`
	// Whether the disk has the kubelet's root directory; at most one disk may set it.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
}

// BlockDevice describes an EBS volume; what is unset, EC2 decides.
type BlockDevice struct {
	// Whether the volume is deleted when the instance is terminated.
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// Whether the volume is encrypted. A volume created from a snapshot has the snapshot's encryption.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// I/O operations per second, for gp3, io1 and io2.
	// +optional
	IOPS *int64 `json:"iops,omitempty"`
	// The customer managed key for encryption, as key id, alias or ARN.
	// +optional
	KMSKeyID *string `json:"kmsKeyID,omitempty"`
	// The snapshot from which the volume is created.
	// +optional
	SnapshotID *string `json:"snapshotID,omitempty"`
	// MiB per second, for gp3.
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`
	// MiB per second at which the snapshot is copied to the volume; requires snapshotID.
	// +kubebuilder:validation:Minimum:=100
	// +kubebuilder:validation:Maximum:=300
	// +optional
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`
	// Size in Gi, G, Ti or T. Either this or snapshotID must be set.
	// +kubebuilder:validation:Pattern:="^((?:[1-9][0-9]{0,3}|[1-4][0-9]{4}|[5][0-8][0-9]{3}|59000)Gi|(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|[6][0-3][0-9]{3}|64000)G|([1-9]||[1-5][0-7]|58)Ti|([1-9]||[1-5][0-9]|6[0-3]|64)T)$"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type:=string
	// +optional
	VolumeSize *resource.Quantity `json:"volumeSize,omitempty" hash:"string"`
	// Type of the volume.
	// +kubebuilder:validation:Enum:={standard,io1,io2,gp2,sc1,st1,gp3}
	// +optional
	VolumeType *string `json:"volumeType,omitempty"`
}

// InstanceStorePolicy says what becomes of an instance's own NVMe disks.
// +kubebuilder:validation:Enum={RAID0}
type InstanceStorePolicy string

// InstanceStorePolicyRAID0 joins the disks into one array that the kubelet and containerd live on, so that the array is the
// node's ephemeral storage.
const InstanceStorePolicyRAID0 InstanceStorePolicy = "RAID0"
