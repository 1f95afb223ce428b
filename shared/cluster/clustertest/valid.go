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

// badConditions checks that the server rejects conditions that the schemas of Karpenter's kinds do not permit, and stores
// none of the status.
func badConditions(s *suite) {
	made := create(s, s.claim("conditions"))
	good := metav1.Condition{Type: "Launched", Status: metav1.ConditionTrue, Reason: "Launched", LastTransitionTime: metav1.NewTime(made.CreationTimestamp.Time)}
	for _, bad := range []struct {
		what   string
		change func(*metav1.Condition)
	}{
		{"a status", func(c *metav1.Condition) { c.Status = "Maybe" }},
		{"a reason with a space", func(c *metav1.Condition) { c.Reason = "not launched" }},
		{"a reason that begins with a digit", func(c *metav1.Condition) { c.Reason = "4xx" }},
		{"a reason of 1,025 characters", func(c *metav1.Condition) { c.Reason = strings.Repeat("a", 1025) }},
		{"a message of 32,769 characters", func(c *metav1.Condition) { c.Message = strings.Repeat("é", 32_769) }},
		{"a type with a space", func(c *metav1.Condition) { c.Type = "not launched" }},
		{"a negative generation", func(c *metav1.Condition) { c.ObservedGeneration = -1 }},
	} {
		changed, condition := made.DeepCopy(), good
		bad.change(&condition)
		changed.Status.NodeName, changed.Status.Conditions = "n", karpenter.Conditions{condition}
		_, err := s.Client.UpdateStatus(s.ctx(), changed)
		s.wantKind(err, fault.Invalid, "updating the status to a condition with "+bad.what)
	}
	twice := made.DeepCopy()
	twice.Status.Conditions = karpenter.Conditions{good, good}
	_, err := s.Client.UpdateStatus(s.ctx(), twice)
	s.wantKind(err, fault.Invalid, "updating the status to two conditions of a type")
	if got := get[*karpenter.NodeClaim](s, cluster.NodeClaims, cluster.KeyOf(made)); got.Status.NodeName != "" {
		s.Error("a rejected status was stored")
	}
	full := made.DeepCopy()
	good.Message = strings.Repeat("é", 32_768)
	full.Status.Conditions = karpenter.Conditions{good}
	updateStatus(s, full)
}

// changedClaim checks that the server rejects a changed spec of a NodeClaim, and accepts other changes.
func changedClaim(s *suite) {
	made := create(s, s.claim("immutable"))
	changed := made.DeepCopy()
	changed.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
	_, err := s.Client.Update(s.ctx(), changed)
	s.wantKind(err, fault.Invalid, "changing the spec of a NodeClaim")
	made.Annotations = map[string]string{"joist.example/a": "b"}
	update(s, made)
}

// largeConfigMap checks the limit of 1 MiB of data in a ConfigMap.
func largeConfigMap(s *suite) {
	object := s.configMap("large")
	object.Data = map[string]string{"a": strings.Repeat("a", 1<<20), "b": "b"}
	_, err := s.Client.Create(s.ctx(), object)
	s.wantKind(err, fault.Invalid, "creating a ConfigMap of more than 1 MiB")
	made := create(s, s.configMap("small"))
	made.Data = object.Data
	_, err = s.Client.Update(s.ctx(), made)
	s.wantKind(err, fault.Invalid, "updating a ConfigMap to more than 1 MiB")
}
