package scenario

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// check finds violations of the format. It accepts everything that a cluster could contain; the
// planner handles that.
type check struct {
	file, typesFile string
	document        document
	types           []instanceType
	problems        *Problems
}

func (c *check) problem(path, format string, args ...any) {
	c.problems.add(c.file, path, format, args...)
}

func (c *check) all() {
	types, pools := map[string]bool{}, map[string]bool{}
	if c.fits("instanceTypes", len(c.types), typesMax) {
		for i := range c.types {
			c.instanceType(i, types)
		}
	}
	if c.document.NodePools == nil {
		c.problem("nodePools", "missing: list the NodePools, or write [] for none")
	} else if c.fits("nodePools", len(*c.document.NodePools), poolsMax) {
		for i, pool := range *c.document.NodePools {
			c.name(fmt.Sprintf("nodePools[%d].metadata.name", i), pool.Name, pools)
		}
	}
	if c.fits("pods", c.pods(), podsMax) {
		c.everyPod(types, pools)
	}
}

// pods returns the total number of pods.
func (c *check) pods() int {
	count := len(c.document.Pods)
	for _, group := range c.document.PodGroups {
		count = min(count+min(max(orEmpty(group).Count, 0), podsMax+1), podsMax+1)
	}
	for i := range c.document.Nodes {
		count += len(c.document.Nodes[i].Pods)
	}
	return count
}

// orEmpty returns an empty value for a null in a list, so that the check finds what it lacks.
func orEmpty[T any](entry *T) *T {
	if entry == nil {
		entry = new(T)
	}
	return entry
}

func (c *check) everyPod(types, pools map[string]bool) {
	names := make(map[string]bool, c.pods())
	for i := range c.document.PodGroups {
		c.group(fmt.Sprintf("podGroups[%d]", i), orEmpty(c.document.PodGroups[i]), names)
	}
	for i := range c.document.Pods {
		path, pod := fmt.Sprintf("pods[%d]", i), orEmpty(c.document.Pods[i])
		c.namespaced(path, pod, names)
		if pod.Spec.NodeName != "" {
			c.problem(path+".spec.nodeName", "a pending pod cannot have a node, but has %s: remove the field, or list the pod under the node", pod.Spec.NodeName)
		}
	}
	if !c.fits("nodes", len(c.document.Nodes), nodesMax) {
		return
	}
	nodes := map[string]bool{}
	for i := range c.document.Nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		c.node(path, &c.document.Nodes[i], types, pools, nodes)
		for j := range c.document.Nodes[i].Pods {
			c.namespaced(fmt.Sprintf("%s.pods[%d]", path, j), &c.document.Nodes[i].Pods[j], names)
		}
	}
}

func (c *check) group(path string, group *podGroup, names map[string]bool) {
	if group.Count < 1 {
		c.problem(path+".count", "invalid count %d: write 1 or more", group.Count)
		return
	}
	if group.Template.Name == "" {
		c.problem(path+".template.metadata.name", "missing: the pods of the group are named after it")
		return
	}
	for i := range group.Count {
		if !c.called(path, group.Template.Namespace, fmt.Sprintf("%s-%d", group.Template.Name, i), names) {
			return // The other pods of the group conflict too.
		}
	}
}

// namespaced checks the name of one pod.
func (c *check) namespaced(path string, pod *corev1.Pod, names map[string]bool) {
	if pod.Name == "" {
		c.problem(path+".metadata.name", "missing: write a name; the plan refers to pods by name")
		return
	}
	c.called(path+".metadata.name", pod.Namespace, pod.Name, names)
}

// called records a pod's name; it returns false if another pod has it.
func (c *check) called(path, namespace, name string, names map[string]bool) bool {
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	full := namespace + "/" + name
	if names[full] {
		c.problem(path, "duplicate pod %s: rename one of the two", full)
		return false
	}
	names[full] = true
	return true
}

func (c *check) name(path, name string, taken map[string]bool) {
	switch {
	case name == "":
		c.problem(path, "missing: write a name")
	case taken[name]:
		c.problem(path, "duplicate name %s: rename one of the two", name)
	}
	taken[name] = true
}

func (c *check) fits(path string, count, most int) bool {
	if count > most {
		c.problem(path, "more than %d: split the scenario", most)
	}
	return count <= most
}

func (c *check) node(path string, n *node, types, pools, nodes map[string]bool) {
	c.name(path+".name", n.Name, nodes)
	if !types[n.InstanceType] {
		c.problem(path+".instanceType", "unknown instance type %q: write one of the instance types of the scenario", n.InstanceType)
	}
	if n.NodePool != "" && !pools[n.NodePool] {
		c.problem(path+".nodePool", "unknown NodePool %q: write one of the NodePools of the scenario, or remove the field for a node without a NodePool", n.NodePool)
	}
	if n.Zone == "" {
		c.problem(path+".zone", "missing: write the zone of the node")
	}
	c.capacityType(c.file, path+".capacityType", n.CapacityType)
}

func (c *check) capacityType(file, path, word string) {
	if known := karpenter.WellKnownLabelValues(karpenter.CapacityTypeLabelKey); !slices.Contains(known, word) {
		c.problems.add(file, path, "unknown capacity type %q: write one of %v", word, known)
	}
}

// needed are the resources of every instance. A type without one of them would hold no pod for no
// visible reason.
var needed = []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods}

func (c *check) instanceType(i int, names map[string]bool) {
	t, path := &c.types[i], fmt.Sprintf("[%d]", i)
	if c.typesFile == c.file {
		path = "instanceTypes" + path
	}
	say := func(field, format string, args ...any) { c.problems.add(c.typesFile, path+field, format, args...) }
	switch {
	case t.Name == "":
		say(".name", "missing: write the name, such as m7g.large")
	case names[t.Name]:
		say(".name", "duplicate instance type %s: remove one of the two", t.Name)
	}
	names[t.Name] = true
	if t.Arch == "" {
		say(".arch", "missing: write amd64 or arm64")
	}
	if len(t.OS) == 0 {
		say(".os", `missing: write ["linux"]`)
	}
	for _, name := range needed {
		if _, has := t.Capacity[name]; !has {
			say(".capacity."+string(name), "missing: write the capacity of the instance type")
		}
	}
	if len(t.Offerings) > offeringsMax {
		say(".offerings", "more than %d: remove some", offeringsMax)
		return
	}
	for j := range t.Offerings {
		c.offering(fmt.Sprintf("%s.offerings[%d]", path, j), &t.Offerings[j])
	}
}

func (c *check) offering(path string, o *offering) {
	say := func(field, format string, args ...any) { c.problems.add(c.typesFile, path+field, format, args...) }
	if o.Zone == "" {
		say(".zone", "missing: write the zone's name, such as us-east-1a")
	}
	c.capacityType(c.typesFile, path+".capacityType", o.CapacityType)
	switch {
	case o.Price == nil:
		say(".price", "missing: write US dollars per hour, or remove the offering")
	case !(*o.Price >= 0) || math.IsInf(*o.Price, 0):
		say(".price", "invalid price %v: write US dollars per hour", *o.Price)
	}
	if o.Available == nil {
		say(".available", "missing: write true, or false if it cannot be launched now")
	}
}
