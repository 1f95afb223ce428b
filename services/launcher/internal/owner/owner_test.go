package owner_test

import (
	"testing"

	"github.com/joist-autoscaler/joist/services/launcher/internal/owner"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

const clusterTag = "kubernetes.io/cluster/prod"

func TestCheckOwner(t *testing.T) {
	claim := launchspec.ClaimName("web", "intent-1", 3)
	unplanned := launchspec.UnplannedIntentID(event.Cluster{Name: "prod"}, "batch", 0, "mine")
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
		{"no NodePool tag", map[string]string{clusterTag: "owned"}, "", false},
		{"launched by Karpenter for a claim without a NodePool", tags("karpenter.sh/nodepool", "", "karpenter.sh/nodeclaim", "mine"), "mine", true},
		{"launched for a claim without a NodePool", tags("karpenter.sh/nodepool", "", launchspec.IntentTag, unplanned), "mine", true},
		{"launched for another claim without a NodePool", tags("karpenter.sh/nodepool", "", launchspec.IntentTag, unplanned), "yours", false},
		{"the claim belongs to the intent of the tag", tags(launchspec.IntentTag, "intent-1"), claim, true},
		{"the last slot of an intent", tags(launchspec.IntentTag, "intent-1"), launchspec.ClaimName("web", "intent-1", 999), true},
		{"the claim belongs to another intent", tags(launchspec.IntentTag, "intent-2"), claim, false},
		{"the claim that a user created", tags(launchspec.IntentTag, unplanned), "mine", true},
		{"another claim than the one that a user created", tags(launchspec.IntentTag, unplanned), "yours", false},
		{"a claim that a user created, and the intent of a plan", tags(launchspec.IntentTag, "intent-1"), "mine", false},
		{"tagged with another claim than the one that a user created", tags("karpenter.sh/nodeclaim", "yours", launchspec.IntentTag, unplanned), "mine", false},
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
