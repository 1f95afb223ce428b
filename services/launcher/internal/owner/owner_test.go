package owner_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/services/launcher/internal/owner"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

const clusterTag = "kubernetes.io/cluster/prod"

func TestCheckOwner(t *testing.T) {
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
		owned bool
	}{
		{"an instance of the cluster", tags(), "", true},
		{"no tags", nil, "", false},
		{"shared", tags(clusterTag, "shared"), "", false},
		{"no NodePool", tags("karpenter.sh/nodepool", ""), "", false},
		{"the claim belongs to the intent of the tag", tags(launchspec.IntentTag, "intent-1"), claim, true},
		{"the last slot of an intent", tags(launchspec.IntentTag, "intent-1"), launchspec.ClaimName("web", "intent-1", 999), true},
		{"the claim belongs to another intent", tags(launchspec.IntentTag, "intent-2"), claim, false},
		{"tagged with the claim", tags("karpenter.sh/nodeclaim", claim, launchspec.IntentTag, "intent-2"), claim, true},
		{"tagged with another claim", tags("karpenter.sh/nodeclaim", "web-x", launchspec.IntentTag, "intent-1"), claim, false},
		{"launched by Karpenter", tags("karpenter.sh/nodeclaim", "web-x"), "web-x", true},
	} {
		err := owner.CheckInstance(cloud.Instance{ID: "i-1", Tags: test.tags}, clusterTag, "owned", test.claim)
		if (err == nil) != test.owned || err != nil && (!fault.Is(err, fault.Foreign) || fault.FindHint(err) == "") {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
