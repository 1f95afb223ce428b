package planvalidator_test

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

const (
	zone     = corev1.LabelTopologyZone
	hostname = corev1.LabelHostname
	capacity = "karpenter.sh/capacity-type"
)

// with changes a pod.
type with func(*corev1.Pod)

// pod returns a pod with the given changes.
func pod(name string, changes ...with) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	requests("cpu", "1")(&p)
	for _, change := range changes {
		change(&p)
	}
	return p
}

func requests(name corev1.ResourceName, amount string) with {
	return func(p *corev1.Pod) {
		r := &p.Spec.Containers[0].Resources
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = resource.MustParse(amount)
	}
}

func labelled(pairs ...string) with {
	return func(p *corev1.Pod) {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			p.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func in(namespace string) with { return func(p *corev1.Pod) { p.Namespace = namespace } }

func selects(name, value string) with {
	return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{name: value} }
}

// wants requires one of several expressions on the node's labels.
func wants(alternatives ...corev1.NodeSelectorRequirement) with {
	return func(p *corev1.Pod) {
		selector := &corev1.NodeSelector{}
		for _, one := range alternatives {
			selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{one}})
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}
	}
}

func that(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func tolerates(key string) with {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

func binds(address string, port int32, protocol corev1.Protocol) with {
	return func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.Ports = append(c.Ports, corev1.ContainerPort{HostIP: address, HostPort: port, Protocol: protocol})
	}
}

func matching(pairs ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		s.MatchLabels[pairs[i]] = pairs[i+1]
	}
	return s
}

// spreads adds a constraint over a label for pods with an app label.
func spreads(key, app string, changes ...func(*corev1.TopologySpreadConstraint)) with {
	return func(p *corev1.Pod) {
		c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: matching("app", app)}
		for _, change := range changes {
			change(&c)
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

// podTerm returns a term of pod affinity or anti-affinity.
func podTerm(key, app string, changes ...func(*corev1.PodAffinityTerm)) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: matching("app", app)}
	for _, change := range changes {
		change(&t)
	}
	return t
}

// withAffinity adds required pod affinity.
func withAffinity(terms ...corev1.PodAffinityTerm) with {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

func awayFrom(terms ...corev1.PodAffinityTerm) with {
	return func(p *corev1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}
	}
}

// machine returns an instance type that is priced by CPU, with spot at a third of the
// price, in three zones.
func machine(name, family string, cpus int64) planvalidator.InstanceType {
	t := planvalidator.InstanceType{
		Name: name, Arch: "amd64", OS: []string{"linux"},
		Capacity: corev1.ResourceList{
			"cpu": *resource.NewQuantity(cpus, resource.DecimalSI), "memory": *resource.NewQuantity(cpus<<31, resource.BinarySI), "pods": resource.MustParse("10"),
		},
		Labels: map[string]string{"karpenter.k8s.aws/instance-cpu": strconv.FormatInt(cpus, 10), "karpenter.k8s.aws/instance-family": family, "topology.kubernetes.io/region": "r"},
	}
	for i, z := range []string{"z1", "z2", "z3"} {
		id := fmt.Sprintf("id-%d", i+1)
		t.Offerings = append(t.Offerings,
			planvalidator.Offering{Zone: z, ZoneID: id, CapacityType: "on-demand", Price: float64(cpus) * 0.06, Available: true},
			planvalidator.Offering{Zone: z, ZoneID: id, CapacityType: "spot", Price: float64(cpus) * 0.02, Available: true})
	}
	return t
}

func pool(name string, requirements ...planvalidator.Requirement) planvalidator.NodePool {
	p := planvalidator.NodePool{}
	p.Metadata.Name = name
	p.Spec.Template.Spec.Requirements = requirements
	return p
}

func require(key string, operator corev1.NodeSelectorOperator, values ...string) planvalidator.Requirement {
	return planvalidator.Requirement{Key: key, Operator: operator, Values: values}
}

// scenario has small types with 2 CPUs in two families, large ones with 8, one with a
// device, a pool called plain and one called tainted, and one daemon.
func scenario(pods ...corev1.Pod) *planvalidator.Scenario {
	gpu := machine("gpu", "g", 8)
	gpu.Capacity["example.com/gpu"] = resource.MustParse("1")
	gpu.Labels["karpenter.k8s.aws/instance-gpu-count"] = "1"
	tainted := pool("tainted")
	tainted.Spec.Template.Metadata.Labels = map[string]string{"team": "blue"}
	tainted.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "blue", Effect: corev1.TaintEffectNoSchedule}}
	return &planvalidator.Scenario{
		Name:          "given",
		InstanceTypes: []planvalidator.InstanceType{machine("small", "s", 2), machine("little", "l", 2), machine("large", "s", 8), gpu},
		NodePools:     []planvalidator.NodePool{pool("plain"), tainted},
		DaemonSetPods: []corev1.Pod{pod("daemon", requests("cpu", "500m"))},
		Pods:          pods,
	}
}

// existing adds an existing on-demand node.
func existing(s *planvalidator.Scenario, name, machine, zone string, pods ...corev1.Pod) {
	s.Nodes = append(s.Nodes, planvalidator.Node{Name: name, NodePool: "plain", InstanceType: machine, Zone: zone, CapacityType: "on-demand", Pods: pods})
}

// launch returns an on-demand node of pool plain with one option; planned sets its price.
func launch(machine, zone string, pods ...string) planvalidator.NewNode {
	return planvalidator.NewNode{NodePool: "plain", InstanceType: machine, Zone: zone, CapacityType: "on-demand", Price: -1, Options: 1, Pods: pods}
}

// planned returns a plan with correct sums.
func planned(s *planvalidator.Scenario, nodes ...planvalidator.NewNode) *planvalidator.Result {
	r := &planvalidator.Result{Pods: len(s.Pods), NewNodes: nodes, ExistingNodes: map[string]int{}, ExistingPods: map[string][]string{}, Unscheduled: map[string]string{}}
	for i := range r.NewNodes {
		n := &r.NewNodes[i]
		if n.Price < 0 {
			n.Price = priceOf(s, *n)
		}
		r.Summary.Scheduled += len(n.Pods)
		r.Summary.DollarsPerHour += n.Price
	}
	r.Summary.NewNodes = len(nodes)
	return r
}

func priceOf(s *planvalidator.Scenario, n planvalidator.NewNode) float64 {
	for _, t := range s.InstanceTypes {
		for _, o := range t.Offerings {
			if t.Name == n.InstanceType && o.Zone == n.Zone && o.CapacityType == n.CapacityType {
				return o.Price
			}
		}
	}
	return 0
}

// join adds pods to an existing node.
func join(r *planvalidator.Result, node string, pods ...string) *planvalidator.Result {
	r.ExistingPods[node] = append(r.ExistingPods[node], pods...)
	r.ExistingNodes[node] += len(pods)
	r.Summary.Scheduled += len(pods)
	return r
}

// leave adds unscheduled pods.
func leave(r *planvalidator.Result, pods ...string) *planvalidator.Result {
	for _, name := range pods {
		r.Unscheduled[name] = "no room"
	}
	r.Summary.Unscheduled += len(pods)
	return r
}

// rulesOf returns the distinct rules of violations, in order.
func rulesOf(violations []planvalidator.Violation) []planvalidator.Rule {
	var rules []planvalidator.Rule
	for _, v := range violations {
		if !slices.Contains(rules, v.Rule) {
			rules = append(rules, v.Rule)
		}
	}
	return rules
}
