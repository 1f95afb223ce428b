package karpenter

// Annotations of the core group.
const (
	// DoNotDisruptAnnotationKey: "true" on a Pod, Node or NodeClaim keeps voluntary disruption away; a duration does so for
	// that long.
	DoNotDisruptAnnotationKey = Group + "/do-not-disrupt"
	// NodePoolHashAnnotationKey: the hash of the template that the claim came from.
	NodePoolHashAnnotationKey = Group + "/nodepool-hash"
	// NodePoolHashVersionAnnotationKey: by which NodePoolHashVersion the hash was made.
	NodePoolHashVersionAnnotationKey = Group + "/nodepool-hash-version"
	// NodeClaimTerminationTimestampAnnotationKey: when draining ends by force, RFC 3339.
	NodeClaimTerminationTimestampAnnotationKey = Group + "/nodeclaim-termination-timestamp"
	// NodeClaimMinValuesRelaxedAnnotationKey: "true" when minValues could not be kept.
	NodeClaimMinValuesRelaxedAnnotationKey = Group + "/nodeclaim-min-values-relaxed"
	// DRADriversAnnotationKey: the resource drivers whose devices the planned pods use, joined by commas.
	DRADriversAnnotationKey = Group + "/requested-dra-drivers"
	// ProviderCompatibilityAnnotationKey: what the API before v1 knew as the provider.
	ProviderCompatibilityAnnotationKey = CompatibilityGroup + "/provider"
)

// Annotations of the AWS group.
const (
	// EC2NodeClassHashAnnotationKey: the hash of the class that the claim came from.
	EC2NodeClassHashAnnotationKey = AWSGroup + "/ec2nodeclass-hash"
	// EC2NodeClassHashVersionAnnotationKey: by which EC2NodeClassHashVersion the hash was made.
	EC2NodeClassHashVersionAnnotationKey = AWSGroup + "/ec2nodeclass-hash-version"
	// InstanceTaggedAnnotationKey: "true" once the instance carries the tags that name its node.
	InstanceTaggedAnnotationKey = AWSGroup + "/tagged"
	// InstanceProfileAnnotationKey: the instance profile that the claim's instance uses.
	InstanceProfileAnnotationKey = AWSGroup + "/instance-profile-name"
	// ClusterNameTaggedCompatibilityAnnotationKey: "true" once the instance carries the tag with the cluster's name.
	ClusterNameTaggedCompatibilityAnnotationKey = "compatibility." + AWSGroup + "/cluster-name-tagged"
)

// Finalizers.
const (
	// TerminationFinalizer is on NodeClaims and Nodes.
	TerminationFinalizer = Group + "/termination"
	// EC2NodeClassTerminationFinalizer is on EC2NodeClasses.
	EC2NodeClassTerminationFinalizer = AWSGroup + "/termination"
)
