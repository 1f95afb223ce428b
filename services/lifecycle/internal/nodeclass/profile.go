package nodeclass

import "github.com/joist-autoscaler/joist/shared/karpenter"

// ProfileAnnotation is the name of the managed instance profile of the class's role. It remains
// after the role is removed from the spec, so that the profile is deleted when the class specifies
// its own. A class that never had a role causes no IAM calls.
const ProfileAnnotation = "joist.sh/instance-profile"

// WithoutProfile returns the class without ProfileAnnotation, because the managed profile is
// deleted.
func WithoutProfile(class *karpenter.EC2NodeClass) *karpenter.EC2NodeClass {
	class = class.DeepCopy()
	delete(class.Annotations, ProfileAnnotation)
	return class
}
