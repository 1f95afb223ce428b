package karpenter

// Annotations of the core group.
const (
	// DoNotDisruptAnnotationKey: "true" on a Pod, Node or NodeClaim prevents voluntary disruption; a duration
	// prevents it for that long.
	DoNotDisruptAnnotationKey = Group + "/do-not-disrupt"
	// NodePoolHashAnnotationKey: the hash of the template from which the claim was created.
	NodePoolHashAnnotationKey = Group + "/nodepool-hash"
	// NodePoolHashVersionAnnotationKey: the NodePoolHashVersion of that hash.
	NodePoolHashVersionAnnotationKey = Group + "/nodepool-hash-version"
	// NodeClaimTerminationTimestampAnnotationKey: when draining is forced to end, RFC 3339.
	NodeClaimTerminationTimestampAnnotationKey = Group + "/nodeclaim-termination-timestamp"
	// NodeClaimMinValuesRelaxedAnnotationKey: "true" if minValues could not be met.
	NodeClaimMinValuesRelaxedAnnotationKey = Group + "/nodeclaim-min-values-relaxed"
	// DRADriversAnnotationKey: the resource drivers whose devices the planned pods use, separated by commas.
	DRADriversAnnotationKey = Group + "/requested-dra-drivers"
	// DoNotRepairAnnotationKey: "true" on a Node or NodeClaim prevents repair and reboot.
	DoNotRepairAnnotationKey = Group + "/do-not-repair"
	// DisruptionCostAnnotationKey: the cost of evicting a Pod, an int32.
	DisruptionCostAnnotationKey = Group + "/disruption-cost"
	// RebootPreBootIDAnnotationKey: the node's boot ID before the reboot of a NodeClaim.
	RebootPreBootIDAnnotationKey = Group + "/reboot-pre-boot-id"
	// RebootTerminationGracePeriodAnnotationKey: the longest drain before the reboot of a NodeClaim, a Go duration.
	RebootTerminationGracePeriodAnnotationKey = Group + "/reboot-termination-grace-period"
)

// Annotations of the AWS group.
const (
	// EC2NodeClassHashAnnotationKey: the hash of the class from which the claim was created.
	EC2NodeClassHashAnnotationKey = AWSGroup + "/ec2nodeclass-hash"
	// EC2NodeClassHashVersionAnnotationKey: the EC2NodeClassHashVersion of that hash.
	EC2NodeClassHashVersionAnnotationKey = AWSGroup + "/ec2nodeclass-hash-version"
	// InstanceTaggedAnnotationKey: "true" once the instance has the tags that name its node.
	InstanceTaggedAnnotationKey = AWSGroup + "/tagged"
	// InstanceProfileAnnotationKey: the instance profile of the claim's instance.
	InstanceProfileAnnotationKey = AWSGroup + "/instance-profile-name"
	// NVIDIAConsumableCapacityAnnotationKey: how pods share the GPUs of an EC2NodeClass: disabled, memory, unlimited, or
	// the number of shares.
	NVIDIAConsumableCapacityAnnotationKey = AWSGroup + "/nvidia-consumable-capacity"
	// ClusterNameTaggedCompatibilityAnnotationKey: "true" once the instance has the tag with the cluster's name.
	ClusterNameTaggedCompatibilityAnnotationKey = "compatibility." + AWSGroup + "/cluster-name-tagged"
)

// Finalizers.
const (
	// TerminationFinalizer is on NodeClaims and Nodes.
	TerminationFinalizer = Group + "/termination"
	// EC2NodeClassTerminationFinalizer is on EC2NodeClasses.
	EC2NodeClassTerminationFinalizer = AWSGroup + "/termination"
)
