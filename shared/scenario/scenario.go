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

// Scenario is a planning problem from a file.
type Scenario struct {
	Name string
	// Notes list input that was ignored.
	Notes     []string
	NodePools []karpenter.NodePool
	// Daemons has one pod of each daemon on new nodes.
	Daemons []corev1.Pod
	Nodes   []Node

	// devices are nil if ResourceClaims are not planned.
	devices *devices
	groups  []*podGroup
	single  []*corev1.Pod
	stock   instancetypes.InstanceTypes
	classes []karpenter.EC2NodeClass
	// exotic has the names of exotic types, and types is the number of all types.
	exotic map[string]bool
	types  int
	// bound counts the pods on nodes.
	bound int
}

// Node is an existing node with its bound pods.
type Node struct {
	NodePool string
	Pods     []*corev1.Pod
	// bare is the planner's node, without its pods.
	bare planning.Node
}

// Types returns the number of instance types.
func (s *Scenario) Types() int { return s.types }

// build converts a checked document to a scenario.
func build(d document, types []instanceType) Scenario {
	out := Scenario{
		Name: d.Name, NodePools: readied(*d.NodePools), Daemons: d.DaemonSetPods, groups: d.PodGroups, single: d.Pods, devices: d.Devices,
		types: len(types), exotic: map[string]bool{},
	}
	byName := out.stockOf(types)
	for i := range d.Nodes {
		out.Nodes = append(out.Nodes, out.nodeOf(&d.Nodes[i], byName))
	}
	return out
}

// readied returns the pools with the condition Ready set to true, unless they have one.
func readied(pools []karpenter.NodePool) []karpenter.NodePool {
	for i := range pools {
		if status := &pools[i].Status; !said(status.Conditions) {
			status.Conditions = status.Conditions.With(ready(), taken)
		}
	}
	return pools
}

func said(c karpenter.Conditions) bool { _, known := c.Get(karpenter.ConditionTypeReady); return known }

// ready returns a true Ready condition.
func ready() metav1.Condition {
	return metav1.Condition{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue, Reason: "Scenario"}
}

// Pods returns the pending pods, each as an object like those of a cluster: with a namespace, the API server's defaults and
// a UID. UIDs ascend in the order of the file, so that of equal pods the first one is placed first. The pods are those of the
// scenario: those of a group share labels and containers, which must not be changed.
func (s *Scenario) Pods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, group := range s.groups {
		settle(&group.Template)
		for i := range group.Count {
			pod := group.Template
			pod.Name, pod.UID = pod.Name+"-"+strconv.Itoa(i), uid(len(out))
			out = append(out, &pod)
		}
	}
	for _, pod := range s.single {
		settle(pod)
		pod.UID = uid(len(out))
		out = append(out, pod)
	}
	return out
}

// settle applies the API server's defaults to a new pod.
func settle(pod *corev1.Pod) {
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	podspec.SetDefaults(&pod.Spec)
}

// uid returns a UID in Kubernetes' format that contains the index in the scenario.
func uid(place int) types.UID {
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", place))
}
