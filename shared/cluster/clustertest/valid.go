package clustertest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// badMetadata checks that the server rejects invalid metadata in creates and updates.
func badMetadata(s *suite) {
	made := create(s, s.configMap("good"))
	for _, bad := range []struct {
		what   string
		change func(*corev1.ConfigMap)
	}{
		{"a label value with a space", func(o *corev1.ConfigMap) { o.Labels = map[string]string{"joist.example/a": "no label"} }},
		{"a label value of 64 characters", func(o *corev1.ConfigMap) { o.Labels = map[string]string{"joist.example/a": strings.Repeat("a", 64)} }},
		{"a label key without a name", func(o *corev1.ConfigMap) { o.Labels = map[string]string{"joist.example/": "a"} }},
		{"an annotation key with a space", func(o *corev1.ConfigMap) { o.Annotations = map[string]string{"no key": "a"} }},
		{"annotations of 256 KiB", func(o *corev1.ConfigMap) {
			o.Annotations = map[string]string{"joist.example/a": strings.Repeat("a", 256*1024)}
		}},
		{"an owner without a UID", func(o *corev1.ConfigMap) {
			o.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}
		}},
	} {
		object := s.configMap("bad")
		bad.change(object)
		_, err := s.Client.Create(s.ctx(), object)
		s.wantKind(err, fault.Invalid, "creating an object with "+bad.what)
		changed := made.DeepCopy()
		bad.change(changed)
		_, err = s.Client.Update(s.ctx(), changed)
		s.wantKind(err, fault.Invalid, "updating an object to "+bad.what)
	}
	_, err := s.Client.Create(s.ctx(), s.configMap("Bad_Name"))
	s.wantKind(err, fault.Invalid, "creating an object with an invalid name")
	good := s.configMap("fine")
	good.Labels = map[string]string{"joist.example/a": "", "b": "A.b_c-9"}
	good.Annotations = map[string]string{"joist.example/a": "anything, --v=9"}
	create(s, good)
}

// badRequirements checks that the server rejects NodeClaims with an invalid schema.
// Values are excluded, because upstream's schema does not check them.
func badRequirements(s *suite) {
	const in, gt = corev1.NodeSelectorOpIn, corev1.NodeSelectorOpGt
	type requirement = karpenter.NodeSelectorRequirementWithMinValues
	var many []requirement
	for i := range karpenter.RequirementsMax + 1 {
		many = append(many, requirement{Key: fmt.Sprintf("joist.example/key-%d", i), Operator: in, Values: []string{"a"}})
	}
	for _, bad := range []struct {
		what string
		list []requirement
	}{
		{"a label of a restricted domain", []requirement{{Key: "karpenter.sh/initialized", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"true"}}}},
		{"a host name", []requirement{{Key: corev1.LabelHostname, Operator: in, Values: []string{"a"}}}},
		{"an invalid key", []requirement{{Key: "joist.example/", Operator: in, Values: []string{"a"}}}},
		{"no value", []requirement{{Key: "joist.example/a", Operator: in}}},
		{"a negative bound", []requirement{{Key: "joist.example/a", Operator: gt, Values: []string{"-1"}}}},
		{"101 requirements", many},
	} {
		claim := s.claim("bad")
		claim.Spec.Requirements = bad.list
		_, err := s.Client.Create(s.ctx(), claim)
		s.wantKind(err, fault.Invalid, "creating a NodeClaim with "+bad.what)
	}
	claim := s.claim("good")
	claim.Labels = map[string]string{"joist.example/team": "no label"}
	_, err := s.Client.Create(s.ctx(), claim)
	s.wantKind(err, fault.Invalid, "creating a NodeClaim with an invalid label value")
	claim.Labels, claim.Spec.Requirements = nil, append(many[:karpenter.RequirementsMax-1:karpenter.RequirementsMax-1], requirement{
		Key: karpenter.NodePoolLabelKey, Operator: in, Values: []string{"default"},
	})
	if got := create(s, claim); cluster.KeyOf(got).Name != claim.Name {
		s.Errorf("created claim %s", got.Name)
	}
}
