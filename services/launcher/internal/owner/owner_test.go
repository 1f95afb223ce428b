package owner_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/services/launcher/internal/owner"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

const clusterTag = "kubernetes.io/cluster/prod"

// What is asked of an instance is done to the cluster's own alone.
func TestCheckInstance(t *testing.T) {
	claim := launchspec.ClaimName("web", "intent-1", 3)
	tags := func(more ...string) map[string]string {
		out := map[string]string{clusterTag: "owned", "karpenter.sh/nodepool": "web"}
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	for _, test := range []struct {
		name  string
		tags  map[string]string
		claim string
		ours  bool
	}{
		{"ours", tags(), "", true},
		{"no tags", nil, "", false},
		{"shared", tags(clusterTag, "shared"), "", false},
		{"of no pool", tags("karpenter.sh/nodepool", ""), "", false},
		{"of the claim's intent", tags(launchspec.IntentTag, "intent-1"), claim, true},
		{"of the last slot of an intent", tags(launchspec.IntentTag, "intent-1"), launchspec.ClaimName("web", "intent-1", 999), true},
		{"of another intent", tags(launchspec.IntentTag, "intent-2"), claim, false},
		{"tagged with the claim", tags("karpenter.sh/nodeclaim", claim, launchspec.IntentTag, "intent-2"), claim, true},
		{"tagged with another", tags("karpenter.sh/nodeclaim", "web-x", launchspec.IntentTag, "intent-1"), claim, false},
		{"Karpenter's", tags("karpenter.sh/nodeclaim", "web-x"), "web-x", true},
	} {
		err := owner.CheckInstance(cloud.Instance{ID: "i-1", Tags: test.tags}, clusterTag, "owned", test.claim)
		if (err == nil) != test.ours || err != nil && (!fault.Is(err, fault.Foreign) || fault.HintOf(err) == "") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
