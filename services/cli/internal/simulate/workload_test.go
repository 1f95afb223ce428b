package simulate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

const podTemplate = `{metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: b, resources: {limits: {cpu: "2"}, requests: {memory: 1Gi}}}]}}`

func expandWorkloads(t *testing.T, text string) simulate.Demand {
	t.Helper()
	documents, err := manifest.Read("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := simulate.ExpandWorkloads(manifest.Objects(documents))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestExpandWorkloads(t *testing.T) {
	version := func(kind string) string {
		group := map[string]string{"Pod": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}[kind]
		if group == "" {
			group = "apps/v1"
		}
		return group
	}
	head := func(kind, name string) string {
		return "apiVersion: " + version(kind) + "\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: shop}\n"
	}
	owned := func(kind, name, by, owner string) string {
		return "apiVersion: " + version(kind) + "\nkind: " + kind +
			"\nmetadata: {name: " + name + ", namespace: shop, ownerReferences: [{apiVersion: " + version(by) + ", uid: u, kind: " + by + ", name: " + owner + ", controller: true}]}\n"
	}
	pod := "spec: {containers: [{name: a, image: b}]}\n"
	for _, tt := range []struct {
		name, text string
		want       []string
		notes      int
	}{
		{"a Deployment without replicas has one", head("Deployment", "web") + "spec: {template: " + podTemplate + "}", []string{"web-0"}, 0},
		{"a Deployment with replicas", head("Deployment", "web") + "spec: {replicas: 2, template: " + podTemplate + "}", []string{"web-0", "web-1"}, 0},
		{"a Deployment with 0 replicas", head("Deployment", "web") + "spec: {replicas: 0, template: " + podTemplate + "}", nil, 0},
		{"a Deployment with negative replicas", head("Deployment", "web") + "spec: {replicas: -3, template: " + podTemplate + "}", nil, 0},
		{"a StatefulSet", head("StatefulSet", "db") + "spec: {replicas: 1, template: " + podTemplate + "}", []string{"db-0"}, 0},
		{"a StatefulSet with a start ordinal", head("StatefulSet", "db") + "spec: {replicas: 2, ordinals: {start: 3}, template: " + podTemplate + "}", []string{"db-3", "db-4"}, 0},
		{"a complete Job", head("Job", "once") + "spec: {template: " + podTemplate + "}\nstatus: {conditions: [{type: Complete, status: \"True\"}]}", nil, 0},
		{"a Job with fewer completions than parallelism", head("Job", "once") + "spec: {parallelism: 5, completions: 2, template: " + podTemplate + "}", []string{"once-0", "once-1"}, 0},
		{"a suspended Job", head("Job", "once") + "spec: {suspend: true, template: " + podTemplate + "}", nil, 0},
		{"a CronJob runs once", head("CronJob", "nightly") + "spec: {jobTemplate: {spec: {parallelism: 2, completions: 2, template: " + podTemplate + "}}}", []string{"nightly-0", "nightly-1"}, 1},
		{"a suspended CronJob", head("CronJob", "nightly") + "spec: {suspend: true, jobTemplate: {spec: {template: " + podTemplate + "}}}", nil, 1},
		{"a running CronJob", head("CronJob", "nightly") + "spec: {jobTemplate: {spec: {template: " + podTemplate + "}}}\n---\n" +
			owned("Job", "nightly-1", "CronJob", "nightly") + "spec: {template: " + podTemplate + "}", []string{"nightly-1-0"}, 0},
		{"a Pod", head("Pod", "p") + pod, []string{"p"}, 0},
		{"a completed Pod", head("Pod", "p") + pod + "status: {phase: Succeeded}", nil, 0},
		{"a Pod with scheduling gates", head("Pod", "p") + "spec: {schedulingGates: [{name: g}], containers: [{name: a, image: b}]}", nil, 1},
		{"a Pod with a volume", head("Pod", "p") + "spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}], containers: [{name: a, image: b}]}", []string{"p"}, 0},
		{"Pods with generated names", strings.Repeat("apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-, namespace: shop}\n"+pod+"---\n", 3), []string{"p", "p-2", "p-3"}, 0},
		{"a running Pod", head("Pod", "p") + "spec: {nodeName: node-1, containers: [{name: a, image: b}]}", nil, 0},
		{"a Pod of a DaemonSet", owned("Pod", "p", "DaemonSet", "logs") + pod, nil, 0},
		{
			"a whole chain counts once",
			head("Deployment", "web") + "spec: {replicas: 3, template: " + podTemplate + "}\n---\n" +
				owned("ReplicaSet", "web-abc", "Deployment", "web") + "spec: {replicas: 3, template: " + podTemplate + "}\n---\n" +
				owned("Pod", "web-abc-1", "ReplicaSet", "web-abc") + pod,
			[]string{"web-abc-1"}, 0,
		},
		{
			"pods of a Deployment, without its ReplicaSet",
			head("Deployment", "web") + "spec: {replicas: 3, template: " + podTemplate + "}\n---\n" +
				strings.Replace(owned("Pod", "web-abc-1", "ReplicaSet", "web-abc"), "metadata: {", "metadata: {labels: {pod-template-hash: abc}, ", 1) + pod,
			[]string{"web-abc-1"}, 0,
		},
		{
			"pods of a CronJob, without its Job",
			head("CronJob", "nightly") + "spec: {jobTemplate: {spec: {template: " + podTemplate + "}}}\n---\n" + owned("Pod", "nightly-29388000-x", "Job", "nightly-29388000") + pod,
			[]string{"nightly-29388000-x"}, 0,
		},
		{
			"pods of another ReplicaSet with a name like a Deployment's",
			head("Deployment", "web") + "spec: {replicas: 1, template: " + podTemplate + "}\n---\n" + owned("Pod", "web-abc-1", "ReplicaSet", "web-abc") + pod,
			[]string{"web-0", "web-abc-1"}, 0,
		},
		{
			"a Deployment of a cluster, without its pods",
			head("Deployment", "web") + "spec: {replicas: 1, template: " + podTemplate + "}\nstatus: {replicas: 1}",
			[]string{"web-0"}, 1,
		},
		{
			"a chain without pods",
			head("Deployment", "web") + "spec: {replicas: 1, template: " + podTemplate + "}\n---\n" +
				owned("ReplicaSet", "web-abc", "Deployment", "web") + "spec: {replicas: 1, template: " + podTemplate + "}\n",
			[]string{"web-abc-0"}, 0,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := expandWorkloads(t, tt.text)
			var names []string
			for _, p := range got.Pending {
				names = append(names, p.Name)
				if p.Namespace != "shop" || p.UID == "" {
					t.Errorf("pod %s is in namespace %q with UID %q", p.Name, p.Namespace, p.UID)
				}
			}
			notes := tt.notes
			if len(tt.want) > 0 {
				notes++ // No case has a DaemonSet.
			}
			if diff := cmp.Diff(tt.want, names); diff != "" || len(got.Notes) != notes {
				t.Errorf("%s\nnotes: %q", diff, got.Notes)
			}
		})
	}
}

func TestExpandSetsDefaults(t *testing.T) {
	got := expandWorkloads(t, `apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      hostNetwork: true
      priorityClassName: high
      containers: [{name: a, image: b, ports: [{containerPort: 80}], resources: {limits: {cpu: "2", memory: 2Gi}, requests: {memory: 1Gi}}}]
`).Pending[0]
	c := got.Spec.Containers[0]
	cpu, memory := c.Resources.Requests[corev1.ResourceCPU], c.Resources.Requests[corev1.ResourceMemory]
	if got.Namespace != "default" || cpu.String() != "2" || memory.String() != "1Gi" || c.Ports[0].HostPort != 80 || got.Spec.Priority == nil || *got.Spec.Priority != 1000 {
		t.Errorf("namespace %s, cpu %s, memory %s, host port %d, priority %v", got.Namespace, cpu.String(), memory.String(), c.Ports[0].HostPort, got.Spec.Priority)
	}
}

func TestExpandRejectsTooManyPods(t *testing.T) {
	documents, err := manifest.Read("x.yaml", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2000000000, template: "+podTemplate+"}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := simulate.ExpandWorkloads(manifest.Objects(documents)); err == nil {
		t.Error("two billion pods are accepted")
	}
}

// TestExpandStatefulSetClaims: each pod has its own claims, and existing claims keep their
// spec.
func TestExpandStatefulSetClaims(t *testing.T) {
	got := expandWorkloads(t, `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  serviceName: db
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: a, image: b}]
      volumes: [{name: data, emptyDir: {}}, {name: tmp, emptyDir: {}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data-db-1, namespace: shop}
spec: {volumeName: disk, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
	if len(got.Pending) != 2 || len(got.Claims) != 2 {
		t.Fatalf("%d pods and %d claims", len(got.Pending), len(got.Claims))
	}
	for i, want := range []string{"data-db-0", "data-db-1"} {
		volumes := got.Pending[i].Spec.Volumes
		if len(volumes) != 2 || volumes[1].PersistentVolumeClaim == nil || volumes[1].PersistentVolumeClaim.ClaimName != want {
			t.Errorf("pod %d has the volumes %+v", i, volumes)
		}
	}
	made, there := got.Claims[cluster.Key{Namespace: "shop", Name: "data-db-0"}], got.Claims[cluster.Key{Namespace: "shop", Name: "data-db-1"}]
	if *made.Spec.StorageClassName != "fast" || made.Spec.VolumeName != "" || there.Spec.VolumeName != "disk" {
		t.Errorf("made %+v, there %+v", made.Spec, there.Spec)
	}
}
