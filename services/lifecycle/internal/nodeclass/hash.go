package nodeclass

import (
	"maps"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// WithHash returns the class with its drift hash; nil if nothing changes. It ignores a hash of another version: claims
// would get that hash, and drift as soon as the class has the right one.
func WithHash(class *karpenter.EC2NodeClass, hash, version string) *karpenter.EC2NodeClass {
	want := map[string]string{
		karpenter.EC2NodeClassHashAnnotationKey: hash, karpenter.EC2NodeClassHashVersionAnnotationKey: version,
	}
	if hash == "" || version != karpenter.EC2NodeClassHashVersion || hasAnnotations(class.Annotations, want) {
		return nil
	}
	class = class.DeepCopy()
	class.Annotations = mergeMaps(class.Annotations, want)
	return class
}

// RehashClaims returns the claims whose hash has another version than the class's, with the
// class's hash: hashes of different versions cannot be compared. A claim that has drifted keeps
// its hash.
func RehashClaims(class *karpenter.EC2NodeClass, users []*karpenter.NodeClaim) []*karpenter.NodeClaim {
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
		c.Annotations = mergeMaps(c.Annotations, map[string]string{versionKey: version})
		if !c.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted) {
			c.Annotations[hashKey] = class.Annotations[hashKey]
		}
		out = append(out, c)
	}
	return out
}

func hasAnnotations(have, want map[string]string) bool {
	for key, value := range want {
		if have[key] != value {
			return false
		}
	}
	return true
}

func mergeMaps(have, more map[string]string) map[string]string {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}
