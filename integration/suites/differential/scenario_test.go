package differential

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// drawn draws a complete planning problem.
func drawn(t *rapid.T, on features) planvalidator.Scenario {
	s := planvalidator.Scenario{Name: "random", InstanceTypesFile: machinesFile, NodePools: pools(t, on), PodGroups: workloads(t, on)}
	if on.daemons {
		s.DaemonSetPods = daemons(t, on)
	}
	if on.nodes {
		s.Nodes = nodes(t, on)
	}
	return s
}

// written returns the scenario as a file.
func written(s planvalidator.Scenario) []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // drawn values can be encoded
	}
	return text
}

// daemons draws up to two daemons. They have at most one alternative: upstream drops a
// daemon's alternatives permanently after one type has rejected them.
func daemons(t *rapid.T, on features) []corev1.Pod {
	var all []corev1.Pod
	for i := range rapid.IntRange(0, 2).Draw(t, "daemons") {
		d := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("daemon-%d", i), Namespace: "kube-system"}}
		d.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": resource.MustParse(rapid.SampledFrom([]string{"50m", "200m"}).Draw(t, "daemon cpu")), "memory": resource.MustParse("100Mi"),
		}}}}
		if rapid.Bool().Draw(t, "tolerates all") {
			d.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}
		if rapid.Bool().Draw(t, "selects") {
			d.Spec.NodeSelector = rapid.SampledFrom([]map[string]string{{corev1.LabelArchStable: "amd64"}, {labelTeam: "shop"}}).Draw(t, "daemon selector")
		}
		if sometimes(t, on.ports, "daemon port") {
			d.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80, Protocol: corev1.ProtocolTCP}}
		}
		all = append(all, d)
	}
	return all
}

// nodes draws up to three nodes that pools could have launched, with bound pods.
func nodes(t *rapid.T, on features) []planvalidator.Node {
	var all []planvalidator.Node
	for i := range rapid.IntRange(0, 3).Draw(t, "nodes") {
		kind := rapid.SampledFrom(machines()).Draw(t, "kind")
		o := rapid.SampledFrom(kind.Offerings).Draw(t, "offering")
		n := planvalidator.Node{Name: fmt.Sprintf("node-%d", i), NodePool: "pool-0", InstanceType: kind.Name, Zone: o.Zone, CapacityType: o.CapacityType}
		for j := range rapid.IntRange(0, 2).Draw(t, "bound") {
			plain := features{affinity: on.affinity, antiAffinity: on.antiAffinity, ports: on.ports}
			p := onePod(t, plain, rapid.SampledFrom(apps).Draw(t, "bound app"))
			p.Name = fmt.Sprintf("bound-%d-%d", i, j)
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("50Mi")}
			n.Pods = append(n.Pods, p)
		}
		all = append(all, n)
	}
	return all
}

// compete reports whether placing one pod can prevent the placement of another: then only
// the numbers of placed pods are comparable.
func compete(s planvalidator.Scenario) bool {
	if slices.ContainsFunc(s.NodePools, func(p planvalidator.NodePool) bool { return len(p.Spec.Limits) > 0 }) {
		return true
	}
	return slices.ContainsFunc(s.PodGroups, func(g planvalidator.PodGroup) bool {
		p := &g.Template
		a := p.Spec.Affinity
		return len(p.Spec.TopologySpreadConstraints) > 0 || a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)
	})
}
