package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// checkFleet compares every instance with its node, its claim, and the pool's
// requirements.
func (w *e2eCluster) checkFleet() {
	w.Helper()
	nodes := map[string]*corev1.Node{}
	for _, node := range w.Nodes() {
		nodes[testbed.InstanceID(node.Spec.ProviderID)] = node
	}
	claims := map[string]*karpenter.NodeClaim{}
	for _, claim := range w.Claims() {
		claims[testbed.InstanceID(claim.Status.ProviderID)] = claim
	}
	alive := w.RunningInstances()
	if len(alive) == 0 || len(nodes) != len(alive) || len(claims) != len(alive) {
		w.Errorf("%d instances, %d nodes, %d NodeClaims", len(alive), len(nodes), len(claims))
	}
	if launched := len(w.Cloud.Records()); launched != len(w.progress.claims) {
		w.Errorf("%d instances were launched for %d NodeClaims", launched, len(w.progress.claims))
	}
	for _, r := range alive {
		node, claim := nodes[r.ID], claims[r.ID]
		if node == nil || claim == nil {
			w.Errorf("instance %s has node %v and NodeClaim %v", r.ID, node != nil, claim != nil)
			continue
		}
		w.checkNode(r, node)
		w.checkInstanceTags(r, node, claim)
		w.Logf("checked %s: %d labels of %s, and the tags of %d kinds of resources", r.ID, len(node.Labels), node.Name, len(r.Others)+2)
	}
}

// sizes are the types that the pool permits, with vCPUs and MiB
// (https://aws.amazon.com/ec2/instance-types/t4/).
var sizes = map[string][2]string{
	"medium": {"2", "4096"}, "large": {"2", "8192"}, "xlarge": {"4", "16384"},
}

// checkNode checks every label that pods may select, and that no startup taint remains.
func (w *e2eCluster) checkNode(r memcloud.Record, node *corev1.Node) {
	w.Helper()
	size := strings.TrimPrefix(r.Type, "t4g.")
	hardware, known := sizes[size]
	if !known || r.Zone != "ap-northeast-2a" || r.CapacityType != cloud.Spot && r.CapacityType != cloud.OnDemand {
		w.Errorf("%s is %s, %s, in %s: the pool does not allow it", r.ID, r.Type, r.CapacityType, r.Zone)
	}
	want := map[string]string{
		corev1.LabelHostname:                                node.Name,
		corev1.LabelInstanceTypeStable:                      r.Type,
		corev1.LabelTopologyZone:                            "ap-northeast-2a",
		corev1.LabelTopologyRegion:                          testbed.Region,
		corev1.LabelArchStable:                              "arm64",
		corev1.LabelOSStable:                                "linux",
		karpenter.LabelTopologyZoneID:                       w.zoneID(r),
		karpenter.CapacityTypeLabelKey:                      r.CapacityType,
		karpenter.NodePoolLabelKey:                          "default",
		karpenter.LabelEC2NodeClass:                         "default",
		karpenter.NodeRegisteredLabelKey:                    "true",
		karpenter.NodeInitializedLabelKey:                   "true",
		karpenter.LabelInstanceCategory:                     "t",
		karpenter.LabelInstanceFamily:                       "t4g",
		karpenter.LabelInstanceGeneration:                   "4",
		karpenter.LabelInstanceSize:                         size,
		karpenter.LabelInstanceCPU:                          hardware[0],
		karpenter.LabelInstanceMemory:                       hardware[1],
		karpenter.LabelInstanceCPUManufacturer:              "aws",
		karpenter.LabelInstanceHypervisor:                   "nitro",
		karpenter.LabelInstanceEncryptionInTransitSupported: "false",
		karpenter.LabelInstanceTenancy:                      karpenter.TenancyDefault,
	}
	for key, value := range want {
		if got, ok := node.Labels[key]; !ok || got != value {
			w.Errorf("node %s: label %s is %q, want %q", node.Name, key, got, value)
		}
	}
	for _, key := range []string{
		karpenter.LabelInstanceCPUSustainedClockSpeedMHz, karpenter.LabelInstanceEBSBandwidth, karpenter.LabelInstanceNetworkBandwidth,
	} {
		if !number.MatchString(node.Labels[key]) {
			w.Errorf("node %s: label %s is %q, want a whole number", node.Name, key, node.Labels[key])
		}
	}
	if len(node.Spec.Taints) > 0 {
		w.Errorf("node %s has the taints %v", node.Name, node.Spec.Taints)
	}
	if !slices.Contains(node.Finalizers, karpenter.TerminationFinalizer) {
		w.Errorf("node %s has the finalizers %v", node.Name, node.Finalizers)
	}
}

var number = regexp.MustCompile(`^[1-9][0-9]*$`)

func (w *e2eCluster) zoneID(r memcloud.Record) string {
	for _, subnet := range w.AWS.Subnets {
		if subnet.Zone == r.Zone {
			return subnet.ZoneID
		}
	}
	return ""
}

// checkInstanceTags checks every tag on the instance's resources, and the tags that are added
// after the launch.
func (w *e2eCluster) checkInstanceTags(r memcloud.Record, node *corev1.Node, claim *karpenter.NodeClaim) {
	w.Helper()
	owner := map[string]string{
		"kubernetes.io/cluster/" + testbed.ClusterName: "owned",
		"eks:eks-cluster-name":                         testbed.ClusterName,
		"karpenter.sh/nodepool":                        "default",
		"karpenter.k8s.aws/ec2nodeclass":               "default",
	}
	w.requireTags("instance "+r.ID, r.Tags, owner)
	w.requireTags("instance "+r.ID, r.Tags, map[string]string{
		"Name": node.Name, "karpenter.sh/nodeclaim": claim.Name, launchspec.IntentTag: claim.Annotations[launchspec.IntentTag],
	})
	kinds := []string{"volume", "fleet", "network-interface"}
	if r.CapacityType == cloud.Spot {
		kinds = append(kinds, "spot-instances-request")
	}
	for _, kind := range kinds {
		w.requireTags(fmt.Sprintf("the %s of %s", kind, r.ID), r.Others[kind], owner)
	}
	template, ok := w.Cloud.Template(r.Template)
	if ok || time.Since(r.Launched) < testbed.MaxTemplateAge {
		w.requireTags("launch template "+r.Template, template.Tags, owner)
	}
}

func (w *e2eCluster) requireTags(what string, tags, want map[string]string) {
	w.Helper()
	for key, value := range want {
		if got, ok := tags[key]; !ok || got != value || value == "" {
			w.Errorf("%s: tag %s is %q, want %q", what, key, got, value)
		}
	}
}
