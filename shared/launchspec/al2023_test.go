package launchspec

import (
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/userdata"
)

func joinable(custom string) boot {
	return boot{
		cluster: catalog.ClusterFacts{Name: "demo", Endpoint: "https://e", CABundle: "Y2E=", ServiceCIDR: "10.0.0.0/16"},
		maxPods: 17, custom: custom, labels: map[string]string{},
	}
}

const multipartData = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\n" +
	"Content-Type: text/x-shellscript\n\n#!/bin/sh\necho one\n--B\n" +
	"Content-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 3\n--B--\n"

func TestUserPartsComeFirstB199(t *testing.T) {
	for _, tt := range []struct {
		name, custom, want string
		parts              int
	}{
		{"none", "", "", 1},
		{"script", "#!/bin/sh\necho hello\n", "echo hello", 2},
		{"script that writes a NodeConfig", "#!/bin/sh\n# node.eks.aws/v1alpha1\n", "text/x-shellscript", 2},
		{"NodeConfig", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 3\n", "maxPods: 3", 2},
		{"multipart", multipartData, "echo one", 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := userData(karpenter.AMIFamilyAL2023, joinable(tt.custom))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(got, "Content-Type: ") - 1; n != tt.parts {
				t.Errorf("%d parts, want %d:\n%s", n, tt.parts, got)
			}
			if at := strings.Index(got, tt.want); at < 0 || at > strings.Index(got, "apiServerEndpoint") {
				t.Errorf("%q is missing or comes last:\n%s", tt.want, got)
			}
			joining, err := userdata.Parse(got)
			if err != nil {
				t.Fatal(err)
			}
			if joining.MaxPods != 17 {
				t.Errorf("maxPods = %d: ours must win", joining.MaxPods)
			}
		})
	}
}

func TestUserDataRefusals(t *testing.T) {
	unknown := joinable("")
	unknown.cluster = catalog.ClusterFacts{Name: "demo"}
	for _, tt := range []struct {
		name, family string
		boot         boot
		want         string
	}{
		{"unknown cluster", karpenter.AMIFamilyAL2023, unknown, "eks:DescribeCluster"},
		{"too large (B056)", karpenter.AMIFamilyAL2023, joinable("#!/bin/sh\n#" + strings.Repeat("x", maxUserData)), "16384"},
		{"broken multipart", karpenter.AMIFamilyAL2023, joinable("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent"), "MIME"},
		{"later family", karpenter.AMIFamilyBottlerocket, joinable(""), "not supported yet"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := userData(tt.family, tt.boot)
			if !fault.Is(err, fault.Invalid) || fault.HintOf(err) == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want an invalid one with a hint that speaks of %q", err, tt.want)
			}
		})
	}
}

func TestCustomIsVerbatimB202(t *testing.T) {
	const mine = "anything at all"
	if got, err := userData(karpenter.AMIFamilyCustom, joinable(mine)); err != nil || got != mine {
		t.Errorf("userData = %q, %v", got, err)
	}
}
