// Package check finds what is wrong with an EC2NodeClass by looking at nothing but
// its spec and its cluster: what EC2 would refuse at the first launch is said
// before it.
//
// The schema refuses most of it already; but schemas are replaced, and a class may
// be older than a rule. Every message says what to change.
package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// userDataMax is the most bytes of user data that EC2 takes, before base64,
	// and userDataWarn is nine tenths of it.
	userDataMax  = 16384
	userDataWarn = userDataMax * 9 / 10
	// EC2's limits of a tag, in characters, and of the tags of one resource:
	// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html
	tagKeyMax, tagValueMax, tagsMax = 128, 256, 50
	// ownTags is how many tags Joist adds to those of the class.
	ownTags = 7
)

// Spec is the first thing that is wrong with a class in its cluster, or odd about
// it; nil when there is nothing.
func Spec(class karpenter.EC2NodeClass, cluster cloud.ClusterInfo) *event.Problem {
	for _, look := range []func(karpenter.EC2NodeClass, cloud.ClusterInfo) *event.Problem{identity, tags, cidr, userData} {
		if problem := look(class, cluster); problem != nil {
			return problem
		}
	}
	return nil
}

// identity finds a class that names both a role and an instance profile. The schema and
// lifecycle check that it names one.
func identity(class karpenter.EC2NodeClass, _ cloud.ClusterInfo) *event.Problem {
	if class.Spec.Role == "" || class.Spec.InstanceProfile == nil || *class.Spec.InstanceProfile == "" {
		return nil
	}
	return invalid("RoleAndInstanceProfile", "spec.role and spec.instanceProfile are both set: remove one of them; "+
		"with role an instance profile is made, and with instanceProfile no IAM call is")
}

// tags finds tags that Karpenter reserves or EC2 refuses.
func tags(class karpenter.EC2NodeClass, _ cloud.ClusterInfo) *event.Problem {
	var wrong []string
	for _, key := range slices.Sorted(maps.Keys(class.Spec.Tags)) {
		if why := tag(key, class.Spec.Tags[key]); why != "" {
			wrong = append(wrong, why)
		}
	}
	if n := len(class.Spec.Tags); n > tagsMax-ownTags {
		wrong = append(wrong, fmt.Sprintf("there are %d, and EC2 takes %d beside the %d that are added", n, tagsMax-ownTags, ownTags))
	}
	if len(wrong) == 0 {
		return nil
	}
	return invalid(event.TagValidationFailed, "spec.tags: "+strings.Join(wrong, "; ")+": remove or shorten them")
}

func tag(key, value string) string {
	switch {
	case karpenter.RestrictedTag(key):
		return fmt.Sprintf("%q is set by the autoscaler itself", key)
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		return fmt.Sprintf("%q has the prefix aws:, which is AWS's own", key)
	case utf8.RuneCountInString(key) > tagKeyMax:
		return fmt.Sprintf("key %.40q… is longer than %d characters", key, tagKeyMax)
	case utf8.RuneCountInString(value) > tagValueMax:
		return fmt.Sprintf("the value of %q is longer than %d characters", key, tagValueMax)
	}
	return ""
}

// cidr is what AL2023's nodeadm cannot do without.
func cidr(class karpenter.EC2NodeClass, cluster cloud.ClusterInfo) *event.Problem {
	family, err := class.AMIFamily()
	if err != nil || family != karpenter.AMIFamilyAL2023 || cluster.Name == "" || cluster.ServiceCIDR != "" {
		return nil
	}
	return invalid(event.ClusterCIDRResolutionFailed, "EKS names no service CIDR of cluster "+cluster.Name+
		", and AL2023 nodes cannot join without: look at kubernetesNetworkConfig of aws eks describe-cluster")
}

// userData finds user data that is too long for EC2. What is merged in is at least the cluster's endpoint and
// certificate, save in Custom; Bottlerocket's settings are written anew without
// their comments, so only the result can tell.
func userData(class karpenter.EC2NodeClass, cluster cloud.ClusterInfo) *event.Problem {
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
		return invalid(event.UserDataSizeLimitExceeded, fmt.Sprintf("user data has %d bytes or more with what is merged in, and EC2 takes %d: "+
			"shorten spec.userData, or let it fetch what is long from S3", size, userDataMax))
	case size > userDataWarn:
		problem := invalid(event.UserDataSizeLimitExceeded, fmt.Sprintf("user data has %d bytes or more of the %d that EC2 takes", size, userDataMax))
		problem.Warning = true
		return problem
	}
	return nil
}

func invalid(reason, message string) *event.Problem {
	return &event.Problem{Condition: karpenter.ConditionTypeValidationSucceeded, Reason: reason, Message: message}
}
