package planvalidator

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scenario is the input of a planner.
type Scenario struct {
	Name string `json:"name"`
	Seed int64  `json:"seed"`
	// InstanceTypesFile is a file in the folder of the scenario that holds InstanceTypes.
	InstanceTypesFile string         `json:"instanceTypesFile,omitempty"`
	InstanceTypes     []InstanceType `json:"instanceTypes,omitempty"`
	NodePools         []NodePool     `json:"nodePools"`
	DaemonSetPods     []corev1.Pod   `json:"daemonSetPods,omitempty"`
	// PodGroups are empty after reading: their pods are in Pods.
	PodGroups []PodGroup   `json:"podGroups,omitempty"`
	Pods      []corev1.Pod `json:"pods,omitempty"`
	Nodes     []Node       `json:"nodes,omitempty"`
	// Namespaces are the labels of the namespaces by name. Each namespace also has the label with its name.
	Namespaces map[string]map[string]string `json:"namespaces,omitempty"`
	// PriceLimit is the largest price of all nodes together, in US dollars per hour; nil is no limit.
	PriceLimit *float64 `json:"priceLimit,omitempty"`
}

// PodGroup is a number of pods that differ only in their names.
type PodGroup struct {
	Count    int        `json:"count"`
	Template corev1.Pod `json:"template"`
}

// InstanceType is an instance type.
type InstanceType struct {
	Name     string              `json:"name"`
	Arch     string              `json:"arch"`
	OS       []string            `json:"os"`
	Capacity corev1.ResourceList `json:"capacity"`
	// Overhead is the part of Capacity that pods cannot use.
	Overhead  corev1.ResourceList `json:"overhead,omitempty"`
	Labels    map[string]string   `json:"labels,omitempty"`
	Offerings []Offering          `json:"offerings"`
}

// Offering is a way to buy an instance type.
type Offering struct {
	Zone         string `json:"zone"`
	ZoneID       string `json:"zoneID,omitempty"`
	CapacityType string `json:"capacityType"`
	// Price is in US dollars per hour.
	Price     float64 `json:"price"`
	Available bool    `json:"available"`
}

// NodePool is the part of a karpenter.sh/v1 NodePool that plans must respect.
type NodePool struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels,omitempty"`
			} `json:"metadata"`
			Spec PoolTemplate `json:"spec"`
		} `json:"template"`
		Disruption Disruption          `json:"disruption,omitzero"`
		Limits     corev1.ResourceList `json:"limits,omitempty"`
		Weight     *int32              `json:"weight,omitempty"`
	} `json:"spec"`
}

// Disruption is the disruption policy of a NodePool.
type Disruption struct {
	// ConsolidateAfter is Never or a duration, which is not checked.
	ConsolidateAfter    string   `json:"consolidateAfter,omitempty"`
	ConsolidationPolicy string   `json:"consolidationPolicy,omitempty"`
	Budgets             []Budget `json:"budgets,omitempty"`
}

// Budget is how many nodes may be removed at once, as a number or a percentage.
type Budget struct {
	Nodes    string   `json:"nodes"`
	Reasons  []string `json:"reasons,omitempty"`
	Schedule *string  `json:"schedule,omitempty"`
	Duration *string  `json:"duration,omitempty"`
}

// PoolTemplate is the template of a NodePool's nodes, without startup taints, which are removed before pods are
// bound.
type PoolTemplate struct {
	Requirements []Requirement  `json:"requirements"`
	Taints       []corev1.Taint `json:"taints,omitempty"`
	NodeClassRef NodeClassRef   `json:"nodeClassRef"`
}

// NodeClassRef names the class of a pool's nodes.
type NodeClassRef struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Name  string `json:"name,omitempty"`
}

// Node is an existing node with its bound pods.
type Node struct {
	Name         string       `json:"name"`
	NodePool     string       `json:"nodePool"`
	InstanceType string       `json:"instanceType"`
	Zone         string       `json:"zone"`
	CapacityType string       `json:"capacityType"`
	Pods         []corev1.Pod `json:"pods,omitempty"`
	// Price is in US dollars per hour. If it is 0, the node has the price of its offering.
	Price float64 `json:"price,omitempty"`
	// Removing is true for a node that is being removed: no pod may be placed on it, and it counts against limits
	// only if they are strict. It counts against price limits until it is gone.
	Removing bool `json:"removing,omitempty"`
	// Actual has the labels, taints and resources of the node, whose daemons are all bound. If it is nil, the node
	// has those of its NodePool and instance type.
	Actual *corev1.Node `json:"actual,omitempty"`
	// OpenLabels are the labels whose values EC2 chooses when it launches the node; Actual has one of them. Until then the node is a domain
	// of a topology spread constraint only if it has pods that the constraint counts: kube-scheduler does not know the node yet.
	OpenLabels []string `json:"openLabels,omitempty"`
}

// completeScenario expands the groups and applies Kubernetes' defaults.
func (s *Scenario) completeScenario() error {
	var all []corev1.Pod
	for _, g := range s.PodGroups {
		if g.Count < 0 {
			return fmt.Errorf("pod group %s has count %d", g.Template.Name, g.Count)
		}
		for i := range g.Count {
			pod := g.Template.DeepCopy()
			pod.Name = fmt.Sprintf("%s-%d", g.Template.Name, i)
			all = append(all, *pod)
		}
	}
	s.Pods, s.PodGroups = append(all, s.Pods...), nil
	seen := map[string]bool{}
	for i := range s.Pods {
		if err := completePod(&s.Pods[i], seen); err != nil {
			return err
		}
	}
	for i := range s.DaemonSetPods {
		if err := completePod(&s.DaemonSetPods[i], map[string]bool{}); err != nil {
			return err
		}
	}
	for i := range s.Nodes {
		for j := range s.Nodes[i].Pods {
			if err := completePod(&s.Nodes[i].Pods[j], seen); err != nil {
				return fmt.Errorf("on node %s: %w", s.Nodes[i].Name, err)
			}
		}
	}
	return nil
}

// completePod applies the defaults of the API server and rejects a second pod with the same name.
func completePod(pod *corev1.Pod, seen map[string]bool) error {
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			requestLimits(&list[i].Resources)
		}
	}
	if seen[podKey(pod)] {
		return fmt.Errorf("two pods have the name %s", podKey(pod))
	}
	seen[podKey(pod)] = true
	return nil
}

// requestLimits adds requests for resources that have only limits.
func requestLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, requested := r.Requests[name]; !requested {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = limit
		}
	}
}

func podKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// Unbound returns the scenario with all bound pods pending and without nodes.
func (s *Scenario) Unbound() *Scenario {
	out := *s
	out.Pods, out.Nodes = append([]corev1.Pod{}, s.Pods...), nil
	for _, n := range s.Nodes {
		out.Pods = append(out.Pods, n.Pods...)
	}
	return &out
}
