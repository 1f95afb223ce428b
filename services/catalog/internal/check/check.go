// Package check finds mistakes in an EC2NodeClass from its spec and its cluster, without calling
// AWS, so that they are reported before EC2 rejects the first launch.
//
// The schema rejects most of them, but a class may be older than a rule of the schema, and the
// schema accepts everything in spec.kubelet. Every message has a fix, except for those of
// spec.kubelet, which are Karpenter's.
package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/services/catalog/internal/status"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// userDataMax is EC2's limit of user data in bytes, before base64. From userDataWarn on,
	// nine tenths of it, the class gets a warning.
	userDataMax  = 16384
	userDataWarn = userDataMax * 9 / 10
	// EC2's limits of tag keys and values in characters, and of the tags of one resource:
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html
	tagKeyMax, tagValueMax, tagsMax = 128, 256, 50
	// ownTags is the number of tags that Joist adds to the tags of the class.
	ownTags = 7
)

// FindProblem returns the first problem or warning of a class in its cluster, or nil.
func FindProblem(class karpenter.EC2NodeClass, cluster cloud.ClusterInfo) *event.Problem {
	for _, find := range []func(karpenter.EC2NodeClass, cloud.ClusterInfo) *event.Problem{checkIdentity, checkTags, checkServiceCIDR, checkUserData} {
		if problem := find(class, cluster); problem != nil {
			return problem
		}
	}
	return nil
}

// checkIdentity finds a class with both a role and an instance profile. The schema and
// lifecycle check that it has one of them.
func checkIdentity(class karpenter.EC2NodeClass, _ cloud.ClusterInfo) *event.Problem {
	if class.Spec.Role == "" || class.Spec.InstanceProfile == nil || *class.Spec.InstanceProfile == "" {
		return nil
	}
	return newProblem("RoleAndInstanceProfile", "spec.role and spec.instanceProfile are both set: remove one of them; "+
		"with role, Joist creates an instance profile; with instanceProfile, it makes no IAM call")
}

// checkTags finds tags that Karpenter reserves or EC2 rejects.
func checkTags(class karpenter.EC2NodeClass, _ cloud.ClusterInfo) *event.Problem {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(class.Spec.Tags)) {
		if why := checkTag(key, class.Spec.Tags[key]); why != "" {
			wrong = append(wrong, why)
		}
	}
	if n := len(class.Spec.Tags); n > tagsMax-ownTags {
		wrong = append(wrong, fmt.Sprintf("the class has %d tags; EC2 allows %d in addition to the %d that Joist adds", n, tagsMax-ownTags, ownTags))
	}
	if len(wrong) == 0 {
		return nil
	}
	return newProblem(event.TagValidationFailed, "spec.tags: "+strings.Join(wrong, "; ")+": remove or shorten them")
}

func checkTag(key, value string) string {
	switch {
	case karpenter.IsRestrictedTag(key):
		return fmt.Sprintf("%q is set by Joist", key)
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		return fmt.Sprintf("%q has the prefix aws:, which AWS reserves", key)
	case utf8.RuneCountInString(key) > tagKeyMax:
		return fmt.Sprintf("key %.40q… is longer than %d characters", key, tagKeyMax)
	case utf8.RuneCountInString(value) > tagValueMax:
		return fmt.Sprintf("the value of %q is longer than %d characters", key, tagValueMax)
	}
	return ""
}

// checkServiceCIDR finds a missing service CIDR, which nodeadm of AL2023 requires.
func checkServiceCIDR(class karpenter.EC2NodeClass, cluster cloud.ClusterInfo) *event.Problem {
	family, err := class.AMIFamily()
	if err != nil || family != karpenter.AMIFamilyAL2023 || cluster.Name == "" || cluster.ServiceCIDR != "" {
		return nil
	}
	return newProblem(event.ClusterCIDRResolutionFailed, "EKS reports no service CIDR of cluster "+cluster.Name+
		", which AL2023 nodes need to join: check kubernetesNetworkConfig in the output of aws eks describe-cluster")
}

// checkUserData finds user data that is too long for EC2. Except for Custom, the cluster's
// endpoint and certificate are merged into it. Bottlerocket is not checked, because its
// settings are rewritten without comments and may become shorter.
func checkUserData(class karpenter.EC2NodeClass, cluster cloud.ClusterInfo) *event.Problem {
	family, err := class.AMIFamily()
	if err != nil || class.Spec.UserData == nil || family == karpenter.AMIFamilyBottlerocket {
		return nil
	}
	size := len(*class.Spec.UserData)
	if family != karpenter.AMIFamilyCustom {
		size += len(cluster.CABundle) + len(cluster.Endpoint)
	}
	switch {
	case size > userDataMax:
		return newProblem(event.UserDataSizeLimitExceeded, fmt.Sprintf("Rendered user data exceeds the EC2 user data size limit (at least %d of %d bytes): "+
			"shorten spec.userData, or fetch the long parts from S3", size, userDataMax))
	case size >= userDataWarn:
		problem := newProblem(event.UserDataSizeLimitExceeded, fmt.Sprintf("user data has at least %d of the %d bytes that EC2 allows", size, userDataMax))
		problem.Warning = true
		return problem
	}
	return nil
}

func newProblem(reason, message string) *event.Problem {
	problem := status.NewProblem(karpenter.ConditionTypeValidationSucceeded, reason, message)
	return &problem
}
