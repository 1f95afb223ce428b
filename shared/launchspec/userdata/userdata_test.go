package userdata_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec/userdata"
)

const nodeConfig = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: prod
    apiServerEndpoint: https://api.example
    certificateAuthority: Y2E=
    cidr: 10.100.0.0/16
  kubelet:
    config:
      maxPods: 58
      clusterDNS: [10.100.0.10]
      kubeReserved:
        cpu: 80m
    flags:
      - --node-labels="karpenter.sh/nodepool=default,team=a"
      - --register-with-taints="karpenter.sh/unregistered:NoExecute,dedicated=gpu:NoSchedule"
`

func multipart(parts ...string) string {
	var text strings.Builder
	text.WriteString("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n")
	for i := 0; i < len(parts); i += 2 {
		text.WriteString("--//\nContent-Type: " + parts[i] + "\n\n" + parts[i+1] + "\n")
	}
	return text.String() + "--//--\n"
}

var prod = userdata.Joining{
	Format: userdata.AL2023, ClusterName: "prod", Endpoint: "https://api.example", Authority: "Y2E=", CIDR: "10.100.0.0/16",
	Labels: map[string]string{"karpenter.sh/nodepool": "default", "team": "a"},
	Taints: []corev1.Taint{
		{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute},
		{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule},
	},
	Kubelet: userdata.Kubelet{MaxPods: 58, ClusterDNS: []string{"10.100.0.10"}, KubeReserved: map[string]string{"cpu": "80m"}},
}

// in returns prod with a change.
func in(change func(*userdata.Joining)) userdata.Joining {
	j := prod
	change(&j)
	return j
}

func TestParse(t *testing.T) {
	tests := []struct {
		name, raw string
		want      userdata.Joining
	}{
		{"bare NodeConfig", nodeConfig, prod},
		{"multipart", multipart("text/x-shellscript; charset=\"us-ascii\"", "#!/bin/bash\necho hello", "application/node.eks.aws", nodeConfig), prod},
		{"a part without a content type", "Content-Type: multipart/mixed; boundary=B\n\n--B\n\n--B\nContent-Type: application/node.eks.aws\n\n" + nodeConfig + "\n--B--\n", prod},
		{"later NodeConfig wins", multipart(
			"application/node.eks.aws", "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 10\n    flags: [--node-labels=own=1]\n",
			"application/node.eks.aws", nodeConfig),
			in(func(j *userdata.Joining) {
				j.Labels = map[string]string{"karpenter.sh/nodepool": "default", "team": "a", "own": "1"}
			})},
		{"Bottlerocket", `
[settings.kubernetes]
api-server = "https://api.example"
cluster-certificate = "Y2E="
cluster-name = "prod"
cluster-dns-ip = "10.100.0.10"
max-pods = 58
[settings.kubernetes.node-labels]
"karpenter.sh/nodepool" = "default"
team = "a"
[settings.kubernetes.node-taints]
dedicated = ["gpu:NoSchedule"]
"karpenter.sh/unregistered" = [":NoExecute"]
[settings.kubernetes.kube-reserved]
cpu = "80m"
`, in(func(j *userdata.Joining) {
			j.Format, j.CIDR = userdata.Bottlerocket, ""
			j.Taints = []corev1.Taint{j.Taints[1], j.Taints[0]}
		})},
		{"AL2", multipart("text/x-shellscript", `#!/bin/bash -xe
exec > >(tee /var/log/user-data.log) 2>&1
/etc/eks/bootstrap.sh 'prod' --apiserver-endpoint 'https://api.example' --b64-cluster-ca 'Y2E=' \
--dns-cluster-ip '10.100.0.10' \
--use-max-pods false \
--kubelet-extra-args '--node-labels="karpenter.sh/nodepool=default,team=a" --max-pods=58 --register-with-taints="karpenter.sh/unregistered:NoExecute,dedicated=gpu:NoSchedule" --kube-reserved="cpu=80m"'`),
			in(func(j *userdata.Joining) { j.Format, j.CIDR = userdata.AL2, "" })},
		{"Windows", `<powershell>
Write-Host 'it''s me'
& "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1" -EKSClusterName 'prod' -APIServerEndpoint 'https://api.example' -Base64ClusterCA 'Y2E=' -DNSClusterIP '10.100.0.10' -KubeletExtraArgs '--node-labels="karpenter.sh/nodepool=default,team=a" --max-pods=58 --register-with-taints="karpenter.sh/unregistered:NoExecute,dedicated=gpu:NoSchedule" --kube-reserved="cpu=80m"'
</powershell>
<persist>true</persist>
`, in(func(j *userdata.Joining) { j.Format, j.CIDR = userdata.Windows, "" })},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := userdata.Parse(test.raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("joining (-want +got):\n" + diff)
			}
		})
	}
}

func TestParseRejects(t *testing.T) {
	without := func(line string) string {
		var kept []string
		for l := range strings.SplitSeq(nodeConfig, "\n") {
			if !strings.Contains(l, line) {
				kept = append(kept, l)
			}
		}
		return strings.Join(kept, "\n")
	}
	tests := []struct{ name, raw, says string }{
		{"nothing", " \n", "empty"},
		{"no part joins", multipart("text/x-shellscript", "#!/bin/bash\necho hello"), "no part is a NodeConfig"},
		{"only a script", "#!/bin/bash\necho hello", "no script calls"},
		{"no cluster name", without("name: prod"), "name is missing"},
		{"no endpoint", without("apiServerEndpoint"), "endpoint is missing"},
		{"no authority", without("certificateAuthority"), "authority is missing"},
		{"no CIDR", without("cidr"), "CIDR is missing"},
		{"a label that the kubelet rejects", strings.Replace(nodeConfig, "team=a", "node-restriction.kubernetes.io/a=b", 1), "rejects the label"},
		{"a label without a value", strings.Replace(nodeConfig, "team=a", "team", 1), "not have the form"},
		{"a taint without an effect", strings.Replace(nodeConfig, "gpu:NoSchedule", "gpu", 1), "has no effect"},
		{"a taint with an unknown effect", strings.Replace(nodeConfig, "gpu:NoSchedule", "gpu:Never", 1), "unknown effect"},
		{"another version", strings.Replace(nodeConfig, "v1alpha1", "v9", 1), "want node.eks.aws/v1alpha1"},
		{"a misspelt field", strings.Replace(nodeConfig, "  kubelet:", "  kublet:", 1), "spec.kublet"},
		{"a field given twice", nodeConfig + "kind: NodeConfig\n", "already set"},
		{"a missing boundary", "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\n--//\n", "part 1"},
		{"settings without Kubernetes", "[settings.ntp]\ntime-servers = []\n", "settings.kubernetes"},
		{"PowerShell that is not closed", "<powershell>\n", "not closed"},
		{"PowerShell without a call", "<powershell>\n# Start-EKSBootstrap.ps1\" -EKSClusterName a\n</powershell>", "no script calls"},
		{"noise", "\x00\x01", "TOML"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := userdata.Parse(test.raw)
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("error = %v, want fault.Invalid", err)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %q, want it to contain %q", err, test.says)
			}
		})
	}
}

func TestKubernetesLabelsOfKubelets(t *testing.T) {
	raw := strings.Replace(nodeConfig, "team=a", "node.kubernetes.io/lifecycle=spot,topology.kubernetes.io/zone=z,topology.k8s.aws/zone-id=a", 1)
	if _, err := userdata.Parse(raw); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(nodeConfig)
	f.Add(multipart("application/node.eks.aws", nodeConfig))
	f.Add("[settings.kubernetes]\ncluster-name = 'x'\n")
	f.Add("#!/bin/sh\n/etc/eks/bootstrap.sh prod --kubelet-extra-args '--node-labels=a'")
	f.Fuzz(func(t *testing.T, raw string) {
		joining, err := userdata.Parse(raw)
		if err == nil && joining.ClusterName == "" {
			t.Error("user data without a cluster's name was accepted")
		}
	})
}
