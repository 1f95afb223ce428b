package convert

import "slices"

// The fields of older versions, from the custom resource definitions of Karpenter 0.31 (v1alpha5 and v1alpha1),
// 0.32 and 1.0 (v1beta1). [] is a list, {} a mapping with any keys. A test checks that each is converted or named.

// kubeletFields are the fields of the settings of kubelets in all versions.
var kubeletFields = []string{
	"clusterDNS[]", "cpuCFSQuota", "evictionHard{}", "evictionMaxPodGracePeriod", "evictionSoft{}",
	"evictionSoftGracePeriod{}", "imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "kubeReserved{}",
	"maxPods", "podsPerCore", "systemReserved{}",
}

// diskFields are the fields of the disks of a class.
var diskFields = []string{
	"deviceName", "ebs.deleteOnTermination", "ebs.encrypted", "ebs.iops", "ebs.kmsKeyID", "ebs.snapshotID",
	"ebs.throughput", "ebs.volumeSize", "ebs.volumeType",
}

// optionFields are the fields of the metadata options of a class.
var optionFields = []string{
	"httpEndpoint", "httpProtocolIPv6", "httpPutResponseHopLimit", "httpTokens",
}

// taintFields are the fields of a taint.
var taintFields = []string{
	"effect", "key", "timeAdded", "value",
}

var provisionerFields = slices.Concat([]string{
	"spec.annotations{}",
	"spec.consolidation.enabled",
	"spec.kubeletConfiguration.containerRuntime",
	"spec.labels{}",
	"spec.limits.resources{}",
	"spec.provider.amiFamily",
	"spec.provider.amiSelector{}",
	"spec.provider.apiVersion",
	"spec.provider.blockDeviceMappings[].deviceName",
	"spec.provider.context",
	"spec.provider.instanceProfile",
	"spec.provider.kind",
	"spec.provider.launchTemplate",
	"spec.provider.metadataOptions.httpEndpoint",
	"spec.provider.securityGroupSelector{}",
	"spec.provider.subnetSelector{}",
	"spec.provider.tags{}",
	"spec.providerRef.apiVersion",
	"spec.providerRef.kind",
	"spec.providerRef.name",
	"spec.requirements[].key",
	"spec.requirements[].operator",
	"spec.requirements[].values[]",
	"spec.ttlSecondsAfterEmpty",
	"spec.ttlSecondsUntilExpired",
	"spec.weight",
}, withPrefix("spec.kubeletConfiguration.", kubeletFields), withPrefix("spec.startupTaints[].", taintFields), withPrefix("spec.taints[].", taintFields))

var templateFields = slices.Concat([]string{
	"spec.amiFamily",
	"spec.amiSelector{}",
	"spec.apiVersion",
	"spec.associatePublicIPAddress",
	"spec.context",
	"spec.detailedMonitoring",
	"spec.instanceProfile",
	"spec.kind",
	"spec.launchTemplate",
	"spec.securityGroupSelector{}",
	"spec.subnetSelector{}",
	"spec.tags{}",
	"spec.userData",
}, withPrefix("spec.blockDeviceMappings[].", diskFields), withPrefix("spec.metadataOptions.", optionFields))

var nodePoolFields = slices.Concat([]string{
	"spec.disruption.budgets[].duration",
	"spec.disruption.budgets[].nodes",
	"spec.disruption.budgets[].schedule",
	"spec.disruption.consolidateAfter",
	"spec.disruption.consolidationPolicy",
	"spec.disruption.expireAfter",
	"spec.limit{}",
	"spec.limits{}",
	"spec.template.metadata.annotations{}",
	"spec.template.metadata.labels{}",
	"spec.template.spec.kubelet.containerRuntime",
	"spec.template.spec.nodeClassRef.apiVersion",
	"spec.template.spec.nodeClassRef.kind",
	"spec.template.spec.nodeClassRef.name",
	"spec.template.spec.requirements[].key",
	"spec.template.spec.requirements[].minValues",
	"spec.template.spec.requirements[].operator",
	"spec.template.spec.requirements[].values[]",
	"spec.template.spec.resources.requests{}",
	"spec.weight",
}, withPrefix("spec.template.spec.kubelet.", kubeletFields), withPrefix("spec.template.spec.startupTaints[].", taintFields), withPrefix("spec.template.spec.taints[].", taintFields))

var nodeClassFields = slices.Concat([]string{
	"spec.amiFamily",
	"spec.amiSelectorTerms[].id",
	"spec.amiSelectorTerms[].name",
	"spec.amiSelectorTerms[].owner",
	"spec.amiSelectorTerms[].tags{}",
	"spec.associatePublicIPAddress",
	"spec.blockDeviceMappings[].rootVolume",
	"spec.context",
	"spec.detailedMonitoring",
	"spec.instanceProfile",
	"spec.instanceStorePolicy",
	"spec.role",
	"spec.securityGroupSelectorTerms[].id",
	"spec.securityGroupSelectorTerms[].name",
	"spec.securityGroupSelectorTerms[].tags{}",
	"spec.subnetSelectorTerms[].id",
	"spec.subnetSelectorTerms[].tags{}",
	"spec.tags{}",
	"spec.userData",
}, withPrefix("spec.blockDeviceMappings[].", diskFields), withPrefix("spec.metadataOptions.", optionFields))

var nodeClaimFields = slices.Concat([]string{
	"spec.nodeClassRef.apiVersion",
	"spec.nodeClassRef.kind",
	"spec.nodeClassRef.name",
	"spec.requirements[].key",
	"spec.requirements[].minValues",
	"spec.requirements[].operator",
	"spec.requirements[].values[]",
	"spec.resources.requests{}",
}, withPrefix("spec.kubelet.", kubeletFields), withPrefix("spec.startupTaints[].", taintFields), withPrefix("spec.taints[].", taintFields))

// withPrefix returns fields below a path.
func withPrefix(prefix string, fields []string) (out []string) {
	for _, field := range fields {
		out = append(out, prefix+field)
	}
	return out
}
