package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
)

// absurdPool is a pool in order, for pods that are not.
const absurdPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  disruption: {consolidateAfter: 1m}
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: nodes}}}
---
`

func absurdPod(spec string) string {
	return absurdPool + "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {app: a}}\nspec: {containers: [{name: a, image: b}], " + spec + "}\n"
}

func asking(cpu, memory string) string {
	return strings.Replace(absurdPod("priority: 0"), "image: b", `image: b, resources: {requests: {cpu: "`+cpu+`", memory: "`+memory+`"}}`, 1)
}

// needing is a pool with other requirements.
func needing(requirements string) string {
	return strings.Replace(absurdPod("priority: 0"), "requirements: []", "requirements: ["+requirements+"]", 1)
}

// TestAbsurdManifests: whatever is written, there is an answer, and it is no
// panic. What no node could hold has a reason.
func TestAbsurdManifests(t *testing.T) {
	distinct := make([]string, 9_000)
	for i := range distinct {
		distinct[i] = fmt.Sprintf("k%d: v", i)
	}
	for _, tt := range []struct {
		name, text string
		code       int
	}{
		{"more cores than there are", asking("1e30", "1"), cli.ExitChanges},
		{"more memory than numbers count", asking("1", "9223372036854775807"), cli.ExitChanges},
		{"less than nothing", asking("-5", "-1Gi"), cli.ExitChanges},
		{"nothing", asking("0", "0"), cli.ExitChanges},
		{"a fraction of a byte", asking("1n", "1m"), cli.ExitChanges},
		{"no containers", absurdPool + "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: []}\n", cli.ExitChanges},
		{"a selector against itself", absurdPod(`nodeSelector: {kubernetes.io/arch: amd64}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: NotIn, values: [amd64]}]}]}}}`), cli.ExitChanges},
		{"no terms", absurdPod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}`), cli.ExitChanges},
		{"a number that is none", absurdPod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [many]}]}]}}}`), cli.ExitChanges},
		{"an operator that is none", absurdPod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Like, values: [b]}]}]}}}`), cli.ExitChanges},
		{"near oneself and far from oneself", absurdPod(`affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: a}}}]}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: a}}}]}}`), cli.ExitChanges},
		{"near nobody", absurdPod(`affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "", labelSelector: {matchLabels: {app: none}}}]}}`), cli.ExitChanges},
		{"a spread over nothing", absurdPod(`topologySpreadConstraints: [{maxSkew: 0, topologyKey: "", whenUnsatisfiable: DoNotSchedule}]`), cli.ExitChanges},
		{"a spread in a word that is none", absurdPod(`topologySpreadConstraints: [{maxSkew: -1, minDomains: -9, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: Perhaps, labelSelector: {matchExpressions: [{key: a, operator: Sometimes}]}}]`), cli.ExitChanges},
		{"a toleration in words that are none", absurdPod(`tolerations: [{operator: Like, effect: Maybe, tolerationSeconds: -4}]`), cli.ExitChanges},
		{"a port beyond all", strings.Replace(absurdPod("hostNetwork: true"), "image: b", "image: b, ports: [{containerPort: 99999999}, {containerPort: -1, hostIP: everywhere}]", 1), cli.ExitChanges},
		{"nine thousand labels", absurdPod("nodeSelector: {" + strings.Join(distinct, ", ") + "}"), cli.ExitChanges},
		{"pools that want what is not", needing(`{key: kubernetes.io/arch, operator: In, values: [pdp11]}`), cli.ExitChanges},
		{"pools that want everything at once", needing(`{key: kubernetes.io/arch, operator: In, values: [amd64]}, {key: kubernetes.io/arch, operator: In, values: [arm64]}`), cli.ExitChanges},
		{"pools that want more variety than there is", needing(`{key: node.kubernetes.io/instance-type, operator: Exists, minValues: 50}, {key: topology.kubernetes.io/zone, operator: Exists, minValues: 50}`), cli.ExitChanges},
		{"a pool without a place", strings.Replace(absurdPod("priority: 0"), "disruption:", `limits: {cpu: "-1", nodes: "0"}, disruption:`, 1), cli.ExitError},
		{"limits below nothing", strings.Replace(absurdPod("priority: 0"), "  disruption:", "  limits: {cpu: \"-1\", memory: 1e30}\n  disruption:", 1), cli.ExitChanges},
		{"a volume of nothing", absurdPod(`volumes: [{name: v, persistentVolumeClaim: {claimName: ""}}, {name: w, ephemeral: {}}]`), cli.ExitChanges},
		{"a set of nothing", absurdPool + "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {replicas: 2, ordinals: {start: -7}, template: {}, volumeClaimTemplates: [{}, {}]}\n", cli.ExitChanges},
		{"a Job of less than nothing", absurdPool + "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: -2, completions: -3, template: {}}\n", cli.ExitNothing},
		{"more pods than there may be", absurdPool + "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 2147483647, template: {}}\n", cli.ExitError},
		{"a node of nothing", absurdPod("priority: 0") + "---\napiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {cpu: \"-1\"}}\n", cli.ExitChanges},
		{"a pool without pods", absurdPool, cli.ExitNothing},
		{"no documents", "# nothing\n", cli.ExitError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := joist(t, tt.text, nil, "plan", "-f", "-", "--region", "eu-west-1")
			if code != tt.code {
				t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", code, tt.code, stdout, stderr)
			}
			if strings.Contains(stdout+stderr, "runtime error") || strings.Contains(stdout, "unschedulable in namespace") && strings.Count(stdout, "  NodePool ") == 0 && !strings.Contains(stdout, "  pod: ") {
				t.Errorf("a reason is missing, or a fault of ours:\n%s%s", stdout, stderr)
			}
		})
	}
}

// FuzzPlan plans anything that can be read.
func FuzzPlan(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(asking("1e30", "1")))
	f.Fuzz(func(t *testing.T, text []byte) {
		var stdout bytes.Buffer
		code := cli.Run(context.Background(), cli.Env{
			Args: []string{"plan", "-f", "-", "--region", "us-east-1"}, Stdin: bytes.NewReader(text), Stdout: &stdout, Stderr: io.Discard,
			Now: func() time.Time { return time.Unix(0, 0) },
		})
		if code != cli.ExitError && stdout.Len() == 0 {
			t.Errorf("exit code %d, and nothing is said", code)
		}
		if strings.Contains(stdout.String(), "runtime error") {
			t.Errorf("a fault of ours:\n%s", &stdout)
		}
	})
}
