package nodeclass

import (
	"maps"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Hashed is the class with its drift hash written on it; nil when there is
// nothing to write.
func Hashed(class *karpenter.EC2NodeClass, hash string) *karpenter.EC2NodeClass {
	want := map[string]string{
		karpenter.EC2NodeClassHashAnnotationKey: hash, karpenter.EC2NodeClassHashVersionAnnotationKey: karpenter.EC2NodeClassHashVersion,
	}
	if hash == "" || carries(class.Annotations, want) {
		return nil
	}
	class = class.DeepCopy()
	class.Annotations = merged(class.Annotations, want)
	return class
}

// Rehashed are the claims of a class whose hash is of another version than the
// class's, as they should be: such hashes cannot be compared, so the claim takes
// the class's over, as though it had been made of it. One that has drifted keeps
// the hash that says so.
func Rehashed(class *karpenter.EC2NodeClass, users []*karpenter.NodeClaim) []*karpenter.NodeClaim {
	const hashKey, versionKey = karpenter.EC2NodeClassHashAnnotationKey, karpenter.EC2NodeClassHashVersionAnnotationKey
	version := class.Annotations[versionKey]
	if version != karpenter.EC2NodeClassHashVersion {
		return nil
	}
	var out []*karpenter.NodeClaim
	for _, c := range users {
		if c.Annotations[versionKey] == version || c.DeletionTimestamp != nil {
			continue
		}
		c = c.DeepCopy()
		c.Annotations = merged(c.Annotations, map[string]string{versionKey: version})
		if !c.Status.Conditions.True(karpenter.ConditionTypeDrifted) {
			c.Annotations[hashKey] = class.Annotations[hashKey]
		}
		out = append(out, c)
	}
	return out
}

func carries(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

func merged(have, more map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}
