package apifaults

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
)

func TestIsRepeatedCall(t *testing.T) {
	denial := func(requested, exists string) string {
		return "arn:aws:iam::1:role/launcher is not allowed ec2:CreateTags on arn:aws:ec2:x:1:instance/i-1 with map[aws:RequestTag/Name:[a] " +
			"aws:RequestTag/karpenter.sh/nodeclaim:[" + requested + "] aws:RequestedRegion:[x] aws:ResourceTag/karpenter.sh/nodeclaim:[" + exists + `] aws:TagKeys:[Name]] (denied by "")`
	}
	deletion := "arn:aws:iam::1:role/launcher is not allowed ec2:DeleteLaunchTemplate on arn:aws:ec2:x:1:launch-template/a with map[aws:RequestedRegion:[x]"
	for text, want := range map[string]bool{
		denial("default-1", "default-1"): true, denial("default-1", "default-2"): false, "not allowed ec2:CreateTags on arn:aws:ec2:x:1:instance/i-1": false,
		deletion + "]": true, deletion + " aws:ResourceTag/Name:[a]]": false, strings.Replace(deletion, "DeleteLaunchTemplate", "TerminateInstances", 1): false,
	} {
		if testbed.IsRepeatedCall(text) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
}
