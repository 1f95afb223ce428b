package workload_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/workload"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

const template = `{metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: b, resources: {limits: {cpu: "2"}, requests: {memory: 1Gi}}}]}}`

func demand(t *testing.T, text string) workload.Demand {
	t.Helper()
	documents, err := manifest.Read("x.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := workload.Of(manifest.Objects(documents))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestWhoWaits(t *testing.T) {
	head := func(kind, name string) string {
		group := map[string]string{"Pod": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}[kind]
		if group == "" {
			group = "apps/v1"
		}
		return "apiVersion: " + group + "\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: shop}\n"
	}
	owned := func(kind, name, by, owner string) string {
		return "apiVersion: " + map[string]string{"Pod": "v1"}[kind] + map[string]string{"ReplicaSet": "apps/v1"}[kind] + "\nkind: " + kind +
			"\nmetadata: {name: " + name + ", namespace: shop, ownerReferences: [{apiVersion: v1, uid: u, kind: " + by + ", name: " + owner + ", controller: true}]}\n"
	}
	pod := "spec: {containers: [{name: a, image: b}]}\n"
	for _, tt := range []struct {
		name, text string
		want       []string
		notes      int
	}{
		{"a Deployment without replicas has one", head("Deployment", "web") + "spec: {template: " + template + "}", []string{"web-0"}, 0},
		{"a Deployment with replicas", head("Deployment", "web") + "spec: {replicas: 2, template: " + template + "}", []string{"web-0", "web-1"}, 0},
		{"a Deployment that is off", head("Deployment", "web") + "spec: {replicas: 0, template: " + template + "}", nil, 0},
		{"a StatefulSet", head("StatefulSet", "db") + "spec: {replicas: 1, template: " + template + "}", []string{"db-0"}, 0},
		{"a Job runs as many as it needs", head("Job", "once") + "spec: {parallelism: 5, completions: 2, template: " + template + "}", []string{"once-0", "once-1"}, 0},
		{"a Job that is suspended", head("Job", "once") + "spec: {suspend: true, template: " + template + "}", nil, 0},
		{"a CronJob waits for its hour", head("CronJob", "nightly") + "spec: {jobTemplate: {spec: {template: " + template + "}}}", nil, 1},
		{"a Pod", head("Pod", "p") + pod, []string{"p"}, 0},
		{"a Pod that has ended", head("Pod", "p") + pod + "status: {phase: Succeeded}", nil, 0},
		{"a Pod behind gates", head("Pod", "p") + "spec: {schedulingGates: [{name: g}], containers: [{name: a, image: b}]}", nil, 1},
		{"a Pod with a volume", head("Pod", "p") + "spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}], containers: [{name: a, image: b}]}", []string{"p"}, 1},
		{"a Pod that runs", head("Pod", "p") + "spec: {nodeName: node-1, containers: [{name: a, image: b}]}", nil, 0},
		{"a daemon's Pod", owned("Pod", "p", "DaemonSet", "logs") + pod, nil, 0},
		{
			"a whole chain counts once",
			head("Deployment", "web") + "spec: {replicas: 3, template: " + template + "}\n---\n" +
				owned("ReplicaSet", "web-abc", "Deployment", "web") + "spec: {replicas: 3, template: " + template + "}\n---\n" +
				owned("Pod", "web-abc-1", "ReplicaSet", "web-abc") + pod,
			[]string{"web-abc-1"}, 0,
		},
		{
			"a chain without pods",
			head("Deployment", "web") + "spec: {replicas: 1, template: " + template + "}\n---\n" +
				owned("ReplicaSet", "web-abc", "Deployment", "web") + "spec: {replicas: 1, template: " + template + "}\n",
			[]string{"web-abc-0"}, 0,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := demand(t, tt.text)
			var names []string
			for _, p := range got.Waiting {
				names = append(names, p.Name)
				if p.Namespace != "shop" || p.UID == "" {
					t.Errorf("pod %s is in namespace %q with UID %q", p.Name, p.Namespace, p.UID)
				}
			}
			if diff := cmp.Diff(tt.want, names); diff != "" || len(got.Notes) != tt.notes {
				t.Errorf("%s\nnotes: %q", diff, got.Notes)
			}
		})
	}
}

func TestDefaultsOfTheAPIServer(t *testing.T) {
	got := demand(t, `apiVersion: scheduling.k8s.io/v1
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
`).Waiting[0]
	c := got.Spec.Containers[0]
	cpu, memory := c.Resources.Requests[corev1.ResourceCPU], c.Resources.Requests[corev1.ResourceMemory]
	if got.Namespace != "default" || cpu.String() != "2" || memory.String() != "1Gi" || c.Ports[0].HostPort != 80 || got.Spec.Priority == nil || *got.Spec.Priority != 1000 {
		t.Errorf("namespace %s, cpu %s, memory %s, host port %d, priority %v", got.Namespace, cpu.String(), memory.String(), c.Ports[0].HostPort, got.Spec.Priority)
	}
}

func TestTooManyPods(t *testing.T) {
	documents, err := manifest.Read("x.yaml", []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2000000000, template: "+template+"}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workload.Of(manifest.Objects(documents)); err == nil {
		t.Error("two thousand million pods are accepted")
	}
}
