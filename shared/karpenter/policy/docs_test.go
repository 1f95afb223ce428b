package policy_test

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// The example in the docs has every annotation and is valid.
func TestExampleInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/docs/nodepool.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "## What Joist adds")
	_, rest, _ = strings.Cut(rest, "```yaml")
	example, _, _ := strings.Cut(rest, "```")
	var pool karpenter.NodePool
	if err := yaml.Unmarshal([]byte(example), &pool); err != nil {
		t.Fatal(err)
	}
	got, err := policy.Read(pool.Annotations)
	if err != nil || got.PriceLimit == nil || !got.Consolidation.EvictionsPerHour.IsSet() {
		t.Errorf("%+v, %v", got, err)
	}
	if len(pool.Annotations) != len(wrong) {
		t.Errorf("the example has %d annotations, want %d", len(pool.Annotations), len(wrong))
	}
	for name := range wrong {
		if _, there := pool.Annotations[name]; !there {
			t.Errorf("the example lacks %s", name)
		}
	}
}
