package apifaults

import (
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
)

func TestIsRepeatedTag(t *testing.T) {
	denial := func(requested, exists string) string {
		return "arn:aws:iam::1:role/launcher is not allowed ec2:CreateTags on arn:aws:ec2:x:1:instance/i-1 with map[aws:RequestTag/Name:[a] " +
			"aws:RequestTag/karpenter.sh/nodeclaim:[" + requested + "] aws:RequestedRegion:[x] aws:ResourceTag/karpenter.sh/nodeclaim:[" + exists + `] aws:TagKeys:[Name]] (denied by "")`
	}
	for text, want := range map[string]bool{
		denial("default-1", "default-1"): true, denial("default-1", "default-2"): false, "not allowed ec2:CreateTags on arn:aws:ec2:x:1:instance/i-1": false,
	} {
		if testbed.IsRepeatedTag(text) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
}
