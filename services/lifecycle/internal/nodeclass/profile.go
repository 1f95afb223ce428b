package nodeclass

import "github.com/joist-autoscaler/joist/shared/karpenter"

// ProfileAnnotation is the name of the instance profile that was made for the
// class's role. It outlasts the role in the spec, so that a class which brings a
// profile of its own later has what was made for it removed, and one that always
// did has IAM left alone.
const ProfileAnnotation = "joist.sh/instance-profile"

// Forgetful is the class without the name of a profile that is no more.
func Forgetful(class *karpenter.EC2NodeClass) *karpenter.EC2NodeClass {
	class = class.DeepCopy()
	delete(class.Annotations, ProfileAnnotation)
	return class
}
