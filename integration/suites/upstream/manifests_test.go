package upstream

import (
	"os"
	"strings"
	"testing"

	awsapis "github.com/aws/karpenter-provider-aws/pkg/apis"
	"github.com/google/go-cmp/cmp"
	karpapis "sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/yaml"
)

const deployed = "../../../deploy/charts/joist-crd/files/"

// checkedValues is the difference in requirements: upstream sets maxLength and pattern on
// the list of values, where API servers ignore them. Joist sets them on each value.
var checkedValues = []string{
	".items.maxLength: only in Joist: 63",
	".items.pattern: only in Joist: ^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
	".maxLength: only in upstream: 63",
	".pattern: only in upstream: ^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
}

// Joist's manifests equal those of Karpenter's AWS provider, except for the listed
// differences: fields, types, defaults, limits, rules, names, columns and subresources.
// Descriptions are Joist's own.
func TestSameManifests(t *testing.T) {
	for _, c := range []struct {
		file   string
		theirs []byte
		rules  int // validation rules, including the AWS provider's
		// checked is the requirements' path, if there are any.
		checked string
	}{
		{"karpenter.sh_nodepools.yaml", awsapis.NodePoolCRD, 20, "spec.template.spec"},
		{"karpenter.sh_nodeclaims.yaml", awsapis.NodeClaimCRD, 10, "spec"},
		{"karpenter.k8s.aws_ec2nodeclasses.yaml", awsapis.EC2NodeClassCRD, 44, ""},
		{"karpenter.sh_nodeoverlays.yaml", awsapis.NodeOverlayCRD, 8, "spec"},
		{"autoscaling.x-k8s.io_capacitybuffers.yaml", karpapis.CapacityBufferCRD, 2, ""},
	} {
		t.Run(c.file, func(t *testing.T) {
			text, err := os.ReadFile(deployed + c.file)
			if err != nil {
				t.Fatal(err)
			}
			ours := manifest(t, text)
			var want []string
			if c.checked != "" {
				at := ".spec.versions[0].schema.openAPIV3Schema.properties." + strings.ReplaceAll(c.checked, ".", ".properties.") + ".properties.requirements.items.properties.values"
				for _, difference := range checkedValues {
					want = append(want, at+difference)
				}
			}
			if diff := cmp.Diff(want, compareManifests("", ours, manifest(t, c.theirs))); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if got := countRules(ours); got != c.rules {
				t.Errorf("%d validation rules, want %d", got, c.rules)
			}
		})
	}
}

func TestCompareManifestsSeesDifferences(t *testing.T) {
	const ours = `
description: mine
properties:
  description: {type: string, description: mine}
  size: {type: integer, maximum: 50}
  mine: {type: string}
required: [b, a]
x-kubernetes-validations:
- {rule: one, message: m}
- {rule: two, message: m}
`
	const theirs = `
properties:
  description: {type: integer, description: theirs}
  size: {type: integer, maximum: 51}
  theirs: {type: string}
required: [a, b]
x-kubernetes-validations:
- {rule: two, message: m}
- {rule: three, message: m}
`
	want := []string{
		".properties.description.type: Joist string, upstream integer",
		".properties.mine: only in Joist: map[type:string]",
		".properties.size.maximum: Joist 50, upstream 51",
		".properties.theirs: only in upstream: map[type:string]",
		".x-kubernetes-validations: only in Joist: map[message:m rule:one]",
		".x-kubernetes-validations: only in upstream: map[message:m rule:three]",
	}
	got := compareManifests("", manifest(t, []byte(ours)), manifest(t, []byte(theirs)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// manifest parses YAML and removes the generator's annotation.
func manifest(t *testing.T, text []byte) any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatalf("reading a manifest: %v", err)
	}
	if meta, ok := out["metadata"].(map[string]any); ok {
		delete(meta, "annotations")
	}
	return out
}
