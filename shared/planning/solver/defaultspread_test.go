package solver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kube "github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// defaults are the default constraints of a cluster with these ReplicaSets, by name, and this Service.
type defaults struct {
	constraints []corev1.TopologySpreadConstraint
	sets        map[string]map[string]string
	service     map[string]string
}

// add gives a class the constraints of a pod with these labels and this ReplicaSet as its owner.
func (d defaults) add(owner string, labels map[string]string) func(*planning.PodSpec) {
	spread := podspec.DefaultSpread{
		Constraints: d.constraints,
		Services: func(string) []*corev1.Service {
			return []*corev1.Service{{Spec: corev1.ServiceSpec{Selector: d.service}}}
		},
		Find: func(_ kube.Kind, key kube.Key) (kube.Object, bool) {
			selector, ok := d.sets[key.Name]
			return &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: selector}}}, ok
		},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: labels}}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, Controller: new(true)}}
	return func(s *planning.PodSpec) {
		s.Labels = labels
		if s.Spread = spread.ListConstraints(pod); s.Spread != nil {
			s.DefaultSpread = true
		}
	}
}

func constraint(key string, skew int32, when corev1.UnsatisfiableConstraintAction, domains *int32) []corev1.TopologySpreadConstraint {
	return []corev1.TopologySpreadConstraint{{MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: when, MinDomains: domains}}
}

// Default constraints act like the pod's own: each workload and each revision of a Deployment is spread by itself,
// and pods on nodes count.
func TestDefaultSpread(t *testing.T) {
	type labels = map[string]string
	hard, soft, hosts := corev1.DoNotSchedule, corev1.ScheduleAnyway, corev1.LabelHostname
	web, db, revised := labels{"app": "web"}, labels{"app": "db"}, labels{"app": "web", "pod-template-hash": "2"}
	small := func(name string, pods int, edits ...func(*planning.PodSpec)) planning.PodClass {
		return planningtest.NewPods(name, pods, "100m", "64Mi", edits...)
	}
	inOneZone := selecting(zoneKey, "ap-northeast-2a")
	for _, tt := range []struct {
		name     string
		defaults defaults
		pods     func(d defaults) []planning.PodClass
		nodes    func(d defaults) []planning.Node
		// zones are the pods of each new zone, sorted; nodes the new nodes, and unplaced the other pods.
		zones           string
		hosts, unplaced int
	}{
		{name: "over zones", defaults: defaults{constraints: constraint(zoneKey, 1, hard, nil), sets: map[string]labels{"web": web}},
			pods: func(d defaults) []planning.PodClass { return []planning.PodClass{small("web", 3, d.add("web", web))} }, zones: "[1 1 1]", hosts: 3},
		{name: "over hosts", defaults: defaults{constraints: constraint(hosts, 1, hard, nil), sets: map[string]labels{"web": web}},
			pods: func(d defaults) []planning.PodClass {
				return []planning.PodClass{small("web", 3, d.add("web", web), inOneZone)}
			}, zones: "[0 0 3]", hosts: 3},
		{name: "none are configured", defaults: defaults{sets: map[string]labels{"web": web}},
			pods: func(d defaults) []planning.PodClass {
				return []planning.PodClass{small("web", 3, d.add("web", web), inOneZone)}
			}, zones: "[0 0 3]", hosts: 1},
		{name: "nothing selects the pods", defaults: defaults{constraints: constraint(hosts, 1, hard, nil)},
			pods: func(d defaults) []planning.PodClass {
				return []planning.PodClass{small("web", 3, d.add("web", web), inOneZone)}
			}, zones: "[0 0 3]", hosts: 1},
		{name: "a Service selects the pods", defaults: defaults{constraints: constraint(zoneKey, 1, hard, nil), service: web},
			pods: func(d defaults) []planning.PodClass { return []planning.PodClass{small("web", 3, d.add("gone", web))} }, zones: "[1 1 1]", hosts: 3},
		{name: "minDomains", defaults: defaults{constraints: constraint(zoneKey, 1, hard, new(int32(3))), sets: map[string]labels{"web": web}},
			pods: func(d defaults) []planning.PodClass {
				return []planning.PodClass{small("web", 3, d.add("web", web), inOneZone)}
			}, zones: "[0 0 1]", hosts: 1, unplaced: 2},
		{name: "a soft constraint is relaxed", defaults: defaults{constraints: constraint(zoneKey, 1, soft, new(int32(3))), sets: map[string]labels{"web": web}},
			pods: func(d defaults) []planning.PodClass {
				return []planning.PodClass{small("web", 3, d.add("web", web), inOneZone)}
			}, zones: "[0 0 3]", hosts: 1},
		{name: "pods on nodes count", defaults: defaults{constraints: constraint(zoneKey, 1, hard, nil), sets: map[string]labels{"web": web}},
			pods: func(d defaults) []planning.PodClass { return []planning.PodClass{small("web", 4, d.add("web", web))} },
			nodes: func(d defaults) []planning.Node {
				return []planning.Node{node("full", running(planningtest.NewPods("old", 2, "1", "64Mi", d.add("web", web))))}
			}, zones: "[0 2 2]", hosts: 2},
		{name: "two workloads", defaults: defaults{constraints: constraint(zoneKey, 1, hard, nil), sets: map[string]labels{"web": web, "db": db}},
			pods: func(d defaults) []planning.PodClass {
				return []planning.PodClass{small("web", 3, d.add("web", web)), small("db", 3, d.add("db", db))}
			}, zones: "[2 2 2]", hosts: 3},
		{name: "two revisions", defaults: defaults{constraints: constraint(zoneKey, 1, hard, nil), sets: map[string]labels{"web": {"app": "web", "pod-template-hash": "1"}, "web-2": revised}},
			pods: func(d defaults) []planning.PodClass {
				return []planning.PodClass{small("web", 3, d.add("web", labels{"app": "web", "pod-template-hash": "1"})), small("web-2", 3, d.add("web-2", revised))}
			}, zones: "[2 2 2]", hosts: 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := inZones(tt.pods(tt.defaults)...)
			if tt.nodes != nil {
				batch.Snapshot.Nodes = tt.nodes(tt.defaults)
			}
			result := solve(t, batch)
			for _, u := range result.Unplaced {
				if text := fmt.Sprint(u); !strings.Contains(text, "its default spread over topology.kubernetes.io/zone") {
					t.Errorf("the reason does not name the default: %s", text)
				}
			}
			zones := perZone(result)
			got := fmt.Sprint(sizes(map[string]int{"a": zones["a"], "b": zones["b"], "c": zones["c"]}))
			if diff := cmp.Diff(tt.zones, got); diff != "" || len(result.Nodes) != tt.hosts || count(result.Unplaced) != tt.unplaced {
				t.Errorf("%d nodes, %v, unplaced %+v%s", len(result.Nodes), zones, result.Unplaced, diff)
			}
		})
	}
}
