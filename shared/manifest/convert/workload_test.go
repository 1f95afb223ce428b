package convert

import (
	"strings"
	"testing"
)

// TestSafeToEvict: Cluster Autoscaler's annotation becomes Karpenter's where it keeps a node, and is named otherwise.
func TestSafeToEvict(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    metadata:\n      annotations:\n"
	for _, test := range []struct{ name, annotations, want, remark string }{
		{"kept", `        cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`, `karpenter.sh/do-not-disrupt: "true"`, `is now karpenter.sh/do-not-disrupt: "true"`},
		{"evicted in any case", `        cluster-autoscaler.kubernetes.io/safe-to-evict: "true"`, `cluster-autoscaler.kubernetes.io/safe-to-evict: "true"`, "has no effect"},
		{"both", "        karpenter.sh/do-not-disrupt: \"true\"\n        cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\"", `safe-to-evict: "false"`, "has no effect"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Convert([]Input{{Name: "a.yaml", Data: []byte(deployment + test.annotations + "\n")}}, ConversionOptions{})
			if text := string(r.Files[0].Text); !strings.Contains(text, test.want) || strings.Count(text, "do-not-disrupt") > 1 {
				t.Errorf("no %s in:\n%s", test.want, text)
			}
			if len(r.Remarks) != 1 || !strings.Contains(r.Remarks[0].Text, test.remark) || r.Remarks[0].Line == 0 {
				t.Errorf("remarks %+v", r.Remarks)
			}
		})
	}
}
