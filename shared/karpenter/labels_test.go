package karpenter

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestNormalizeLabel(t *testing.T) {
	for key, want := range map[string]string{
		"failure-domain.beta.kubernetes.io/zone":   "topology.kubernetes.io/zone",
		"failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
		"beta.kubernetes.io/instance-type":         "node.kubernetes.io/instance-type",
		"beta.kubernetes.io/arch":                  "kubernetes.io/arch",
		"beta.kubernetes.io/os":                    "kubernetes.io/os",
		"topology.ebs.csi.aws.com/zone":            "topology.kubernetes.io/zone",
		"topology.kubernetes.io/zone":              "topology.kubernetes.io/zone",
		"team":                                     "team",
	} {
		if got := NormalizeLabel(key); got != want {
			t.Errorf("%s became %s, want %s", key, got, want)
		}
	}
	for old, stable := range NormalizedLabels() {
		if IsWellKnownLabel(old) || !IsWellKnownLabel(stable) {
			t.Errorf("normalization %s to %s must map an unknown label to a well-known one", old, stable)
		}
	}
}

func TestFindLabel(t *testing.T) {
	const beta, ebs, zone = "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone", corev1.LabelTopologyZone
	for name, c := range map[string]struct {
		labels map[string]string
		want   string
		found  bool
	}{
		"no labels":         {nil, "", false},
		"another label":     {map[string]string{"team": "x"}, "", false},
		"an empty value":    {map[string]string{zone: ""}, "", true},
		"the stable name":   {map[string]string{zone: "a"}, "a", true},
		"an older name":     {map[string]string{ebs: "a"}, "a", true},
		"both names":        {map[string]string{zone: "a", beta: "b", ebs: "c"}, "a", true},
		"two older names":   {map[string]string{ebs: "c", beta: "b"}, "b", true},
		"name of another":   {map[string]string{"beta.kubernetes.io/os": "linux"}, "", false},
		"empty older value": {map[string]string{beta: "", ebs: "c"}, "", true},
	} {
		if got, found := FindLabel(c.labels, zone); got != c.want || found != c.found {
			t.Errorf("%s: got %q, %v, want %q, %v", name, got, found, c.want, c.found)
		}
	}
	if got, found := FindLabel(map[string]string{"team": "x"}, "team"); got != "x" || !found {
		t.Errorf("a custom label: got %q, %v", got, found)
	}
}

func TestValidateTemplateLabel(t *testing.T) {
	for key, allowed := range map[string]bool{
		"team":                              true,
		"example.com/team":                  true,
		"kubernetes.io/anything":            true,
		"k8s.io/anything":                   true,
		"notkarpenter.sh/team":              true,
		CapacityTypeLabelKey:                true,
		LabelInstanceCPU:                    true,
		corev1.LabelTopologyZone:            true,
		NodePoolLabelKey:                    false,
		corev1.LabelHostname:                false,
		"karpenter.sh/team":                 false,
		"sub.karpenter.sh/team":             false,
		"karpenter.k8s.aws/instance-colour": false,
		LabelEC2NodeClass:                   false,
	} {
		if err := ValidateTemplateLabel(key); (err == nil) != allowed {
			t.Errorf("%s: %v, want allowed %v", key, err, allowed)
		}
	}
}

// The functions return copies: a caller's changes must not affect others.
func TestListsAreCopies(t *testing.T) {
	first := AWSLabels()
	first[0] = "changed"
	if slices.Contains(AWSLabels(), "changed") {
		t.Error("AWSLabels returned its internal list")
	}
	labels := NormalizedLabels()
	labels["team"] = "changed"
	if NormalizeLabel("team") != "team" {
		t.Error("NormalizedLabels returned its internal map")
	}
}

func TestNodeClassLabelKey(t *testing.T) {
	if got := NodeClassLabelKey(schema.GroupKind{Group: AWSGroup, Kind: "EC2NodeClass"}); got != LabelEC2NodeClass {
		t.Errorf("got %s", got)
	}
}

func TestIsRestrictedTag(t *testing.T) {
	for key, want := range map[string]bool{
		"":                               true,
		"eks:eks-cluster-name":           true,
		"kubernetes.io/cluster":          true,
		"kubernetes.io/cluster/prod":     true,
		"karpenter.sh/nodepool":          true,
		"karpenter.sh/nodeclaim":         true,
		"karpenter.k8s.aws/ec2nodeclass": true,
		"Name":                           false,
		"team":                           false,
		"karpenter.sh/discovery":         false,
	} {
		if got := IsRestrictedTag(key); got != want {
			t.Errorf("%q: %v, want %v", key, got, want)
		}
	}
}
