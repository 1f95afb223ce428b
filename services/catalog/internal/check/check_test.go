package check

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var demoCluster = cloud.ClusterInfo{Name: "demo", Endpoint: "https://x", CABundle: "Y2EK", ServiceCIDR: "172.20.0.0/16", Version: "1.36"}

func TestFindProblem(t *testing.T) {
	type class = karpenter.EC2NodeClass
	many := map[string]string{}
	for i := range tagsMax - ownTags + 1 {
		many[strings.Repeat("k", i+1)] = ""
	}
	data := func(family string, bytes int) func(*class, *cloud.ClusterInfo) {
		return func(c *class, _ *cloud.ClusterInfo) {
			c.Spec.AMIFamily, c.Spec.UserData = &family, new(strings.Repeat("x", bytes))
		}
	}
	tagged := func(key, value string) func(*class, *cloud.ClusterInfo) {
		return func(c *class, _ *cloud.ClusterInfo) { c.Spec.Tags = map[string]string{key: value} }
	}
	merged := len(demoCluster.CABundle) + len(demoCluster.Endpoint)
	for _, tt := range []struct {
		name    string
		edit    func(*class, *cloud.ClusterInfo)
		reason  string
		warning bool
		message string
	}{
		{"fine", func(*class, *cloud.ClusterInfo) {}, "", false, ""},
		{"an allowed tag", tagged("Name", "web"), "", false, ""},
		{"role and profile", func(c *class, _ *cloud.ClusterInfo) { c.Spec.InstanceProfile = new("p") }, "RoleAndInstanceProfile", false, "remove one"},
		{"a reserved tag", tagged("eks:eks-cluster-name", "x"), "TagValidationFailed", false, "eks:eks-cluster-name"},
		{"the cluster's tag", tagged("kubernetes.io/cluster/demo", "owned"), "TagValidationFailed", false, "kubernetes.io/cluster/demo"},
		{"no key", tagged("", "x"), "TagValidationFailed", false, `""`},
		{"AWS's tag", tagged("aws:ec2:fleet-id", "x"), "TagValidationFailed", false, "AWS reserves"},
		{"a long key", tagged(strings.Repeat("ü", 129), ""), "TagValidationFailed", false, "128 characters"},
		{"a key that just fits", tagged(strings.Repeat("ü", 128), ""), "", false, ""},
		{"a long value", tagged("k", strings.Repeat("ü", 257)), "TagValidationFailed", false, "256 characters"},
		{"too many tags", func(c *class, _ *cloud.ClusterInfo) { c.Spec.Tags = many }, "TagValidationFailed", false, "has 44 tags"},
		{"no CIDR", func(_ *class, info *cloud.ClusterInfo) { info.ServiceCIDR = "" }, "ClusterCIDRResolutionFailed", false, "service CIDR"},
		{"no CIDR with Bottlerocket", func(c *class, info *cloud.ClusterInfo) {
			c.Spec.AMIFamily, info.ServiceCIDR = new(karpenter.AMIFamilyBottlerocket), ""
		}, "", false, ""},
		{"full", data(karpenter.AMIFamilyCustom, userDataMax), "UserDataSizeLimitExceeded", true, "at least 16384 of"},
		{"overfull", data(karpenter.AMIFamilyCustom, userDataMax+1), "UserDataSizeLimitExceeded", false, "Rendered user data exceeds the EC2 user data size limit (at least 16385 of 16384 bytes)"},
		{"full after merging", data(karpenter.AMIFamilyAL2023, userDataMax-merged), "UserDataSizeLimitExceeded", true, "16384"},
		{"overfull after merging", data(karpenter.AMIFamilyAL2023, userDataMax-merged+1), "UserDataSizeLimitExceeded", false, "16385"},
		{"less than nine tenths", data(karpenter.AMIFamilyCustom, userDataWarn-1), "", false, ""},
		{"nine tenths", data(karpenter.AMIFamilyCustom, userDataWarn), "UserDataSizeLimitExceeded", true, "at least 14745 of"},
		{"Bottlerocket is not checked", data(karpenter.AMIFamilyBottlerocket, 2*userDataMax), "", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, info := class{}, demoCluster
			c.Spec.Role, c.Spec.AMISelectorTerms = "node", []karpenter.AMISelectorTerm{{Alias: "al2023@latest"}}
			tt.edit(&c, &info)
			got := FindProblem(c, info)
			if tt.reason == "" {
				if got != nil {
					t.Fatalf("got %+v", got)
				}
				return
			}
			if got == nil || got.Condition != karpenter.ConditionTypeValidationSucceeded || got.Reason != tt.reason ||
				got.Warning != tt.warning || !strings.Contains(got.Message, tt.message) {
				t.Fatalf("got %+v", got)
			}
		})
	}
}
