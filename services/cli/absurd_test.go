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

// validPool is a valid NodePool, for pods that are not valid.
const validPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  disruption: {consolidateAfter: 1m}
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: nodes}}}
---
`

func absurdPod(spec string) string {
	return validPool + "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {app: a}}\nspec: {containers: [{name: a, image: b}], " + spec + "}\n"
}

func podRequesting(cpu, memory string) string {
	return strings.Replace(absurdPod("priority: 0"), "image: b", `image: b, resources: {requests: {cpu: "`+cpu+`", memory: "`+memory+`"}}`, 1)
}

// poolRequiring returns a NodePool with other requirements, and a pod.
func poolRequiring(requirements string) string {
	return strings.Replace(absurdPod("priority: 0"), "requirements: []", "requirements: ["+requirements+"]", 1)
}

// TestAbsurdManifests plans absurd manifests: the command never panics, and every
// unschedulable pod has a reason.
func TestAbsurdManifests(t *testing.T) {
	distinct := make([]string, 9_000)
	for i := range distinct {
		distinct[i] = fmt.Sprintf("k%d: v", i)
	}
	for _, tt := range []struct {
		name, text string
		code       int
	}{
		{"more CPU than any instance type", podRequesting("1e30", "1"), cli.ExitChanges},
		{"the largest memory quantity", podRequesting("1", "9223372036854775807"), cli.ExitChanges},
		{"negative requests", podRequesting("-5", "-1Gi"), cli.ExitChanges},
		{"zero requests", podRequesting("0", "0"), cli.ExitChanges},
		{"a fraction of a byte", podRequesting("1n", "1m"), cli.ExitChanges},
		{"no containers", validPool + "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: []}\n", cli.ExitChanges},
		{"contradictory node selectors", absurdPod(`nodeSelector: {kubernetes.io/arch: amd64}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/arch, operator: NotIn, values: [amd64]}]}]}}}`), cli.ExitChanges},
		{"no node selector terms", absurdPod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}`), cli.ExitChanges},
		{"an invalid number", absurdPod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [many]}]}]}}}`), cli.ExitChanges},
		{"an unknown operator", absurdPod(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Like, values: [b]}]}]}}}`), cli.ExitChanges},
		{"affinity and anti-affinity to itself", absurdPod(`affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: a}}}]}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {app: a}}}]}}`), cli.ExitChanges},
		{"affinity to no pod", absurdPod(`affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "", labelSelector: {matchLabels: {app: none}}}]}}`), cli.ExitChanges},
		{"a spread without a topology key", absurdPod(`topologySpreadConstraints: [{maxSkew: 0, topologyKey: "", whenUnsatisfiable: DoNotSchedule}]`), cli.ExitChanges},
		{"a spread with an unknown action", absurdPod(`topologySpreadConstraints: [{maxSkew: -1, minDomains: -9, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: Perhaps, labelSelector: {matchExpressions: [{key: a, operator: Sometimes}]}}]`), cli.ExitChanges},
		{"a toleration with an unknown operator", absurdPod(`tolerations: [{operator: Like, effect: Maybe, tolerationSeconds: -4}]`), cli.ExitChanges},
		{"ports out of range", strings.Replace(absurdPod("hostNetwork: true"), "image: b", "image: b, ports: [{containerPort: 99999999}, {containerPort: -1, hostIP: everywhere}]", 1), cli.ExitChanges},
		{"nine thousand labels", absurdPod("nodeSelector: {" + strings.Join(distinct, ", ") + "}"), cli.ExitChanges},
		{"a pool that requires an unknown architecture", poolRequiring(`{key: kubernetes.io/arch, operator: In, values: [pdp11]}`), cli.ExitChanges},
		{"a pool with contradictory requirements", poolRequiring(`{key: kubernetes.io/arch, operator: In, values: [amd64]}, {key: kubernetes.io/arch, operator: In, values: [arm64]}`), cli.ExitChanges},
		{"a pool with too high minValues", poolRequiring(`{key: node.kubernetes.io/instance-type, operator: Exists, minValues: 50}, {key: topology.kubernetes.io/zone, operator: Exists, minValues: 50}`), cli.ExitChanges},
		{"a limit at the wrong place", strings.Replace(absurdPod("priority: 0"), "disruption:", `limits: {cpu: "-1", nodes: "0"}, disruption:`, 1), cli.ExitError},
		{"negative limits", strings.Replace(absurdPod("priority: 0"), "  disruption:", "  limits: {cpu: \"-1\", memory: 1e30}\n  disruption:", 1), cli.ExitChanges},
		{"a volume without a claim name", absurdPod(`volumes: [{name: v, persistentVolumeClaim: {claimName: ""}}, {name: w, ephemeral: {}}]`), cli.ExitChanges},
		{"a StatefulSet without fields", validPool + "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {replicas: 2, ordinals: {start: -7}, template: {}, volumeClaimTemplates: [{}, {}]}\n", cli.ExitChanges},
		{"a Job with negative parallelism", validPool + "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: -2, completions: -3, template: {}}\n", cli.ExitNothing},
		{"more replicas than the limit", validPool + "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 2147483647, template: {}}\n", cli.ExitError},
		{"a node with negative CPU", absurdPod("priority: 0") + "---\napiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {cpu: \"-1\"}}\n", cli.ExitChanges},
		{"a pool without pods", validPool, cli.ExitNothing},
		{"no documents", "# nothing\n", cli.ExitError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := runJoist(t, tt.text, nil, "plan", "-f", "-", "--region", "eu-west-1")
			if code != tt.code {
				t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", code, tt.code, stdout, stderr)
			}
			if strings.Contains(stdout+stderr, "runtime error") || strings.Contains(stdout, "unschedulable in namespace") && strings.Count(stdout, "  NodePool ") == 0 && !strings.Contains(stdout, "  pod: ") {
				t.Errorf("a reason is missing, or the command panicked:\n%s%s", stdout, stderr)
			}
		})
	}
}

// FuzzPlan plans every input that can be parsed.
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
	f.Add([]byte(podRequesting("1e30", "1")))
	f.Fuzz(func(t *testing.T, text []byte) {
		var stdout bytes.Buffer
		code := cli.Run(context.Background(), cli.Env{
			Args: []string{"plan", "-f", "-", "--region", "us-east-1"}, Stdin: bytes.NewReader(text), Stdout: &stdout, Stderr: io.Discard,
			Now: func() time.Time { return time.Unix(0, 0) },
		})
		if code != cli.ExitError && stdout.Len() == 0 {
			t.Errorf("exit code %d without output", code)
		}
		if strings.Contains(stdout.String(), "runtime error") {
			t.Errorf("the command panicked:\n%s", &stdout)
		}
	})
}
