package nodeclass

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

const hashKey, versionKey = karpenter.EC2NodeClassHashAnnotationKey, karpenter.EC2NodeClassHashVersionAnnotationKey

// drawClass draws a class as Karpenter 1.14 wrote it: its hash has version v5, and its kubelet settings are those of
// 1.14.
func drawClass(t *rapid.T) *karpenter.EC2NodeClass {
	class := fresh()
	class.Annotations = map[string]string{hashKey: rapid.StringMatching(`[0-9]{1,20}`).Draw(t, "hash"), versionKey: "v5"}
	class.Spec.AMISelectorTerms = []karpenter.AMISelectorTerm{{Alias: "al2023@latest"}}
	class.Spec.Tags = rapid.MapOf(rapid.StringMatching(`[a-z]{1,5}`), rapid.StringMatching(`[a-z]{0,5}`)).Draw(t, "tags")
	for field, values := range map[string][]string{
		"maxPods": {"110", "0"}, "clusterDNS": {`["10.0.0.10"]`}, "kubeReserved": {`{"cpu":"100m","memory":"1Gi"}`, `{}`}, "cpuCFSQuota": {"false"},
	} {
		if rapid.Bool().Draw(t, field) {
			if class.Spec.Kubelet == nil {
				class.Spec.Kubelet = karpenter.KubeletConfiguration{}
			}
			class.Spec.Kubelet[field] = apiextensionsv1.JSON{Raw: []byte(rapid.SampledFrom(values).Draw(t, field))}
		}
	}
	return class
}

// drawClaims draws launched claims of the class: with its hash, with one of another version, or without. Some differ
// from the class and have the condition Drifted.
func drawClaims(t *rapid.T, class *karpenter.EC2NodeClass) []*karpenter.NodeClaim {
	claims := make([]*karpenter.NodeClaim, rapid.IntRange(1, 8).Draw(t, "claims"))
	for i := range claims {
		c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%d", i), CreationTimestamp: metav1.NewTime(noon), Annotations: maps.Clone(class.Annotations)}}
		c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeLaunched, Status: metav1.ConditionTrue, Reason: "Launched"}, noon)
		switch rapid.SampledFrom([]string{"same", "same", "older", "none", "drifted"}).Draw(t, "claim") {
		case "older":
			c.Annotations[versionKey], c.Annotations[hashKey] = "v4", "1"
		case "none":
			c.Annotations = nil
		case "drifted":
			c.Annotations[hashKey] = "other"
			c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrifted, Status: metav1.ConditionTrue, Reason: drift.NodeClassDrift}, noon)
		}
		claims[i] = c
	}
	return claims
}

// hasClassDrift reports whether the hashes of the claim and of the class differ.
func hasClassDrift(class *karpenter.EC2NodeClass, claim *karpenter.NodeClaim) bool {
	pool := &karpenter.NodePool{}
	return drift.Reason(drift.View{Claim: claim, Class: class, Pool: pool, Now: noon}) == drift.NodeClassDrift
}

func currentHash(t *rapid.T, class *karpenter.EC2NodeClass) *karpenter.EC2NodeClass {
	hash, err := class.Hash("")
	if err != nil {
		t.Fatal(err)
	}
	if next := WithHash(class, hash, karpenter.EC2NodeClassHashVersion); next != nil {
		return next
	}
	return class
}

// A new version of the hash drifts no claim, at no time of the upgrade and in no order of the writes. Claims that had
// drifted stay drifted. Afterwards every change of the spec is drift, also of fields that the earlier version lacked.
func TestNewHashVersionIsNoDrift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		class := drawClass(t)
		claims := drawClaims(t, class)
		drifted := map[string]bool{}
		for _, c := range claims {
			drifted[c.Name] = c.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted)
		}
		check := func(step string) {
			for _, c := range claims {
				if hasClassDrift(class, c) && !drifted[c.Name] {
					t.Fatalf("%s: %s drifts, with %v, from the class with %v", step, c.Name, c.Annotations, class.Annotations)
				}
			}
		}
		check("before the upgrade")
		if WithHash(class, "1", "v5") != nil || RehashClaims(class, claims) != nil {
			t.Fatal("a hash of version v5 was written")
		}
		class = currentHash(t, class)
		check("the class has the new hash")
		for len(RehashClaims(class, claims)) > 0 {
			// Lifecycle's cache has only some of the claims, and only some of the writes succeed.
			seen := slices.DeleteFunc(slices.Clone(claims), func(*karpenter.NodeClaim) bool { return rapid.Bool().Draw(t, "unseen") })
			for _, written := range RehashClaims(class, seen) {
				i := slices.IndexFunc(claims, func(c *karpenter.NodeClaim) bool { return c.Name == written.Name })
				claims[i] = written
				check("after " + written.Name)
			}
		}
		for _, c := range claims {
			if c.Annotations[versionKey] != karpenter.EC2NodeClassHashVersion || hasClassDrift(class, c) != drifted[c.Name] {
				t.Fatalf("%s has %v, the class %v", c.Name, c.Annotations, class.Annotations)
			}
		}
		class = class.DeepCopy()
		switch rapid.SampledFrom([]string{"enclaves", "no enclaves", "kubelet"}).Draw(t, "change") {
		case "enclaves":
			class.Spec.EnclaveOptions = &karpenter.EnclaveOptions{Enabled: true}
		case "no enclaves":
			class.Spec.EnclaveOptions = &karpenter.EnclaveOptions{}
		default:
			if class.Spec.Kubelet == nil {
				class.Spec.Kubelet = karpenter.KubeletConfiguration{}
			}
			class.Spec.Kubelet["topologyManagerPolicy"] = apiextensionsv1.JSON{Raw: []byte(`"restricted"`)}
		}
		class = currentHash(t, class)
		for _, c := range claims {
			if !hasClassDrift(class, c) {
				t.Fatalf("%s does not drift from a changed class", c.Name)
			}
		}
	})
}
