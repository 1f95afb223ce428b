package charts

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/integration/environment/helm"
	"github.com/joist-autoscaler/joist/services/cli"
)

// converting is the folder of the package convert, which has copies of the chart's files.
const converting = root + "/shared/manifest/convert"

// The command that converts values knows the same old names as the chart.
func TestConvertKnowsOldNames(t *testing.T) {
	for _, name := range []string{"eras.yaml", "keys.yaml"} {
		text, err := os.ReadFile(helm.Joist + "/files/" + name)
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, converting+"/"+name, string(text))
	}
}

// The chart accepts converted values, also those of the --set flags in published guides, and its notes have
// nothing to say about old names and unknown values.
func TestConvertedValues(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"seed-001":  {"-f", "testdata/values/seed-001.yaml"},
		"flat":      {"-f", converting + "/testdata/values-flat.yaml", "--var", "EKS_CLUSTER_NAME=demo", "--var", "KarpenterControllerRole=arn:aws:iam::111122223333:role/karpenter"},
		"0.16":      {"-f", converting + "/testdata/values-0.16.yaml"},
		"0.31":      {"-f", converting + "/testdata/values-0.31.yaml"},
		"karpenter": {"-f", karpenters(t)},
		"set of 0.17": {
			"--set", `serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::111122223333:role/me`, "--set", "clusterName=me-karpenter-demo",
			"--set", "clusterEndpoint=", "--set", "aws.defaultInstanceProfile=KarpenterNodeInstanceProfile-me",
		},
		"set of 0.26": {
			"--set", `serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::111122223333:role/demo`, "--set", "settings.aws.clusterName=demo",
			"--set", "settings.aws.defaultInstanceProfile=KarpenterNodeInstanceProfile-demo", "--set", "settings.aws.interruptionQueueName=demo",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, trouble bytes.Buffer
			code := cli.Run(t.Context(), cli.Env{Args: append([]string{"convert"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &trouble})
			if code == cli.ExitError {
				t.Fatal(trouble.String())
			}
			path := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			// What Joist needs and Karpenter's values do not have.
			set := []string{"settings.region=ap-northeast-2", "settings.accountID=111122223333", image}
			if name == "karpenter" {
				set = append(set, "settings.clusterName=demo")
			}
			notes := given{namespace: "karpenter", files: []string{path}, set: set}.render(t, "--show-only", "templates/notes.yaml")
			for _, line := range []string{"read as", "not used", "unknown values", "write it as spec", "there is no webhook"} {
				if strings.Contains(notes, line) && (name != "0.16" || line != "unknown values") {
					t.Errorf("the notes have %q:\n%s\n%s", line, notes, out.String())
				}
			}
		})
	}
}
