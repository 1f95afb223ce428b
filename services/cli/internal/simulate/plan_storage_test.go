package simulate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/planning"
)

const statefulYAML = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  serviceName: db
  template: {spec: {containers: [{name: a, image: b}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

const poolYAML = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  disruption: {consolidateAfter: 1m}
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: nodes}}}
`

func joinManifests(parts ...string) string { return strings.Join(parts, "---\n") }

// listVolumes formats the volumes of the pending pods.
func listVolumes(a simulate.PlanResult) (out []string) {
	for _, class := range a.Batch.Pending {
		for _, v := range class.Spec.Volumes {
			words := []string{v.Claim, v.Driver, v.Problem}
			for _, term := range v.Alternatives {
				for _, r := range term.MatchExpressions {
					words = append(words, r.Key+string(r.Operator)+strings.Join(r.Values, "|"))
				}
			}
			for _, ref := range class.Pods {
				out = append(out, ref.Name+": "+strings.Join(strings.Fields(strings.Join(words, " ")), " "))
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestPlanReadsVolumes(t *testing.T) {
	const fast = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: ebs.csi.aws.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [eu-west-1b]}]}]
`
	const disk = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-db-0, namespace: shop, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {volumeName: disk, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1c]}]}]}}
`
	const user = `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
spec: {containers: [{name: a, image: b}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}
`
	const zone = "topology.kubernetes.io/zoneIn"
	for _, tt := range []struct {
		name, text string
		want       []string
		assumed    string
	}{
		{"claims with a class in the files", joinManifests(statefulYAML, fast),
			[]string{"db-0: ebs.csi.aws.com " + zone + "eu-west-1b", "db-1: ebs.csi.aws.com " + zone + "eu-west-1b"}, ""},
		{"an assumed class", statefulYAML, []string{"db-0: ebs.csi.aws.com", "db-1: ebs.csi.aws.com"},
			"StorageClass fast is not in the files: assuming that it creates EBS volumes in the zone of the pod"},
		{"an assumed default class", strings.Replace(statefulYAML, "storageClassName: fast, ", "", 1), []string{"db-0: ebs.csi.aws.com", "db-1: ebs.csi.aws.com"},
			"no default StorageClass in the files: assuming one that creates EBS volumes in the zone of the pod"},
		{"an existing claim", joinManifests(statefulYAML, fast, disk),
			[]string{"db-0: ebs.csi.aws.com " + zone + "eu-west-1c", "db-1: ebs.csi.aws.com " + zone + "eu-west-1b"}, ""},
		{"a missing claim", user, []string{"p: data it does not exist"}, ""},
		{"no class on purpose", strings.Replace(statefulYAML, "fast", `""`, 1), []string{
			"db-0: data-db-0 it is not bound, and has no StorageClass to provision a volume",
			"db-1: data-db-1 it is not bound, and has no StorageClass to provision a volume",
		}, ""},
		{"a claim that two pods share keeps its name", joinManifests(user, strings.Replace(user, "name: p,", "name: q,", 1), strings.ReplaceAll(disk, "data-db-0", "data")),
			[]string{"p: data ebs.csi.aws.com " + zone + "eu-west-1c", "q: data ebs.csi.aws.com " + zone + "eu-west-1c"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := planFor(t, joinManifests(tt.text, poolYAML), "eu-west-1")
			if diff := cmp.Diff(tt.want, listVolumes(a)); diff != "" {
				t.Error(diff)
			}
			if all := strings.Join(a.Assumptions, "\n"); !strings.Contains(all, tt.assumed) || tt.assumed == "" && strings.Contains(all, "StorageClass") {
				t.Errorf("assumed:\n%s", all)
			}
		})
	}
}

func TestPlanReadsNodes(t *testing.T) {
	a := planFor(t, joinManifests(poolYAML, `apiVersion: v1
kind: Node
metadata: {name: old, labels: {zone: a}}
status: {allocatable: {cpu: "4", pods: "10"}}
`, `apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: old}
spec: {drivers: [{name: ebs.csi.aws.com, nodeID: i-1, allocatable: {count: 25}}]}
`, `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
spec: {nodeName: old, containers: [{name: a, image: b, resources: {requests: {cpu: "1"}}}], volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}
`, `apiVersion: v1
kind: Pod
metadata: {name: q, namespace: shop}
spec: {nodeName: gone, containers: [{name: a, image: b}]}
`, `apiVersion: v1
kind: Pod
metadata: {name: r, namespace: shop}
spec:
  containers: [{name: a, image: b}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, namespaceSelector: {matchLabels: {team: x}}}]}}
`, `apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: x, secret: hush}}
`), "eu-west-1")
	if len(a.Batch.Snapshot.Nodes) != 1 {
		t.Fatalf("nodes: %+v", a.Batch.Snapshot.Nodes)
	}
	n, limit := a.Batch.Snapshot.Nodes[0], planning.AttachLimitResource("ebs.csi.aws.com")
	volumes, used, cpu := n.Allocatable[limit], n.Used[limit], n.Used["cpu"]
	if volumes.Value() != 25 || used.Value() != 1 || cpu.Value() != 1 || len(n.Pods) != 1 || !n.Initialized {
		t.Errorf("node: %+v", n)
	}
	if diff := cmp.Diff(map[string]map[string]string{"shop": {"team": "x"}}, a.Batch.Snapshot.Namespaces); diff != "" {
		t.Error(diff)
	}
	if all := strings.Join(a.Assumptions, "\n"); !strings.Contains(all, "Node gone is not in the files: its pods are ignored") {
		t.Errorf("assumed:\n%s", all)
	}
}

func TestPlanTakesTheLastDuplicate(t *testing.T) {
	text := `apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
spec: {containers: [{name: a, image: b, resources: {requests: {cpu: "1"}}}]}
`
	a := planFor(t, joinManifests(text, poolYAML, strings.Replace(text, `"1"`, `"2"`, 1)), "eu-west-1")
	if len(a.Batch.Pending) != 1 || len(a.Batch.Pending[0].Pods) != 1 || a.Batch.Pending[0].Spec.Requests.Cpu().Value() != 2 {
		t.Errorf("pending: %+v", a.Batch.Pending)
	}
	if all := strings.Join(a.Assumptions, "\n"); !strings.Contains(all, "Pod shop/p is in the files more than once: using the last one") {
		t.Errorf("assumed:\n%s", all)
	}
}
