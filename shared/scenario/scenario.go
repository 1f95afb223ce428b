package scenario

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// Scenario is a planning problem as it was written down.
type Scenario struct {
	Name string
	// Notes say what was read and plays no part in planning.
	Notes     []string
	NodePools []karpenter.NodePool
	// Daemons is one pod of each daemon that a new node carries.
	Daemons []corev1.Pod
	Nodes   []Node

	groups  []podGroup
	single  []corev1.Pod
	stock   instancetypes.InstanceTypes
	classes []karpenter.EC2NodeClass
	// exotic are the names of the types that are, and types how many there
	// are in all.
	exotic map[string]bool
	types  int
	// bound counts the pods on nodes.
	bound int
}

// Node is a node that exists, with the pods that are bound to it.
type Node struct {
	NodePool string
	Pods     []*corev1.Pod
	// bare is the node for the planner, without its pods.
	bare planning.Node
}

// Types is how many instance types the scenario has.
func (s *Scenario) Types() int { return s.types }

// build turns a document that was found correct into a scenario.
func build(d document, types []instanceType) Scenario {
	out := Scenario{
		Name: d.Name, NodePools: readied(*d.NodePools), Daemons: d.DaemonSetPods, groups: d.PodGroups, single: d.Pods,
		types: len(types), exotic: map[string]bool{},
	}
	byName := out.stockOf(types)
	for i := range d.Nodes {
		out.Nodes = append(out.Nodes, out.nodeOf(&d.Nodes[i], byName))
	}
	return out
}

// readied are the pools as a cluster would show them: each is ready, unless it says
// how it stands.
func readied(pools []karpenter.NodePool) []karpenter.NodePool {
	for i := range pools {
		if status := &pools[i].Status; !said(status.Conditions) {
			status.Conditions = status.Conditions.With(ready(), taken)
		}
	}
	return pools
}

func said(c karpenter.Conditions) bool { _, known := c.Get(karpenter.ConditionTypeReady); return known }

// ready is the condition of what is taken to be ready.
func ready() metav1.Condition {
	return metav1.Condition{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue, Reason: "Scenario"}
}

// Pods makes the pods that wait, each an object of its own, as a cluster would
// show them: with a namespace, with the API server's defaults, and with a UID.
// UIDs ascend in the order of the file, so that of equal pods the first is placed
// first.
func (s *Scenario) Pods() []*corev1.Pod {
	var out []*corev1.Pod
	add := func(template *corev1.Pod, name string) {
		pod := template.DeepCopy()
		pod.Name, pod.UID = name, uid(len(out))
		settle(pod)
		out = append(out, pod)
	}
	for i := range s.groups {
		template := &s.groups[i].Template
		for j := range s.groups[i].Count {
			add(template, template.Name+"-"+strconv.Itoa(j))
		}
	}
	for i := range s.single {
		add(&s.single[i], s.single[i].Name)
	}
	return out
}

// settle does what the API server does to a pod that is created.
func settle(pod *corev1.Pod) {
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	podspec.SetDefaults(&pod.Spec)
}

// uid looks like Kubernetes' own and is the place in the scenario.
func uid(place int) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", place))
}
