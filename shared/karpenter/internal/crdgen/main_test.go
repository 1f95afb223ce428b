package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const deployed = "../../../../deploy/charts/joist-crd/files"

// A changed rule without a run of go generate shows as a difference, because edits do not change a finished manifest.
func TestDeployedManifestsCarryTheRules(t *testing.T) {
	for _, m := range manifests() {
		t.Run(m.file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(deployed, m.file))
			if err != nil {
				t.Fatal(err)
			}
			again, err := m.apply(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(text), string(again)); diff != "" {
				t.Errorf("run go generate in shared/karpenter (-deployed +rules):\n%s", diff)
			}
		})
	}
}

func TestFind(t *testing.T) {
	schema := node{"properties": node{"list": node{"items": node{"properties": node{
		"map": node{"additionalProperties": node{"type": "string"}},
	}}}}}
	crd := node{"spec": node{"versions": []any{node{"schema": node{"openAPIV3Schema": schema}}}}}
	for _, c := range []struct {
		path  string
		found bool
	}{
		{"list", true},
		{"list[].map", true},
		{"list[].map{}", true},
		{"list{}", false},
		{"list[][]", false},
		{"list[].map.key", false},
		{"other", false},
	} {
		if _, err := findSchema(crd, c.path); (err == nil) != c.found {
			t.Errorf("find(%q): %v, want found %v", c.path, err, c.found)
		}
	}
}

// An edit on a missing path must stop the generator; otherwise a renamed field would silently lose its rules.
func TestEditsOnMissingPathsFail(t *testing.T) {
	crd := node{"spec": node{"versions": []any{node{"schema": node{"openAPIV3Schema": node{}}}}}}
	for name, e := range map[string]edit{
		"set": setKeywords("gone", node{}), "unset": removeKeywords("gone", "pattern"), "mute": removeDescription("gone"),
	} {
		if e(crd) == nil {
			t.Errorf("%s on a missing path succeeded", name)
		}
	}
}

func TestRemoveDescriptionsKeepsFieldsNamedDescription(t *testing.T) {
	schema := node{"description": "text", "properties": node{"description": node{"type": "string", "description": "text"}}}
	removeDescriptions(schema)
	want := node{"properties": node{"description": node{"type": "string"}}}
	if diff := cmp.Diff(want, schema); diff != "" {
		t.Errorf("muted schema (-want +got):\n%s", diff)
	}
}

// The schema and the code must agree on the allowed labels of the AWS domain.
func TestAWSKeysAreTheWellKnownLabelsAndTheClass(t *testing.T) {
	got := slices.Sorted(slices.Values(awsKeys(karpenter.LabelCapacityReservationInterruptible)))
	want := []string{karpenter.LabelEC2NodeClass}
	for _, key := range karpenter.WellKnownLabels() {
		if strings.HasPrefix(key, karpenter.AWSGroup+"/") {
			want = append(want, key)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("labels in the rule (-well-known +rule):\n%s", diff)
	}
}
